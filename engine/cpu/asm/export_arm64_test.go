package asm

var pairGEMM = neonInt8PairGEMM
