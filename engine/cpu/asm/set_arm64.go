package asm

// Every arm64 has these instructions.
var sets = []*Set{{
	Name: "neon", Has: true,
	Lanes: 8, Tiles: neonTiles, Turn: genericTurn, Patch: genericPatch, Least: genericLeast, Greatest: genericGreatest,
	Flow: genericFlow,
}}
