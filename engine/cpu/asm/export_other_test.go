//go:build !amd64

package asm

var pairTiles [][]Tile
