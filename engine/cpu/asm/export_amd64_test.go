package asm

var pairGEMM = avx512Int8PairGEMM
