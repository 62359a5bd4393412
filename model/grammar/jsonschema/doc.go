// Package jsonschema turns JSON schemas into automata that accept JSON of these schemas.
//
// Call [Compile], or [Object] for any JSON object.
//
// Whoever compiles chooses one way of writing where JSON has several. Properties stand in the order of the schema. White space is at most one
// space behind a comma and a colon. A string has one spelling: characters stand for themselves but for \" \\ \b \f \n \r and \t, and
// other control characters do not come. A number has at most 15 digits before its point and 15 behind it, and an exponent of at most two.
// Objects that name properties have no others, unless additionalProperties asks for them. Values of any schema, and a $ref within itself,
// nest as deep as fits, at most [MaxNesting].
//
// Invariants: what an automaton accepts is JSON that the schema accepts. A keyword that is not supported is refused by its name, and never
// left out; those that only tell people something are ignored. Time and memory are bounded, whatever the schema.
//
// Source: JSON Schema 2020-12, as pydantic and zod write it.
package jsonschema
