package asm

var pairTiles = avx512PairsTiles
