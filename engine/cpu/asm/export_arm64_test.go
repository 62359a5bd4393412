package asm

var pairTiles = neonPairsTiles
