//go:build 386 || amd64 || arm || arm64 || loong64 || mips64le || mipsle || ppc64le || riscv64 || wasm

package tensor

// littleEndian is defined only where the machine's own words can be stored as
// they are, so that the package does not build elsewhere.
const littleEndian = true
