// Package kerneltest holds what the tests and benchmarks of the packages below engine/cpu share.
// It has primitives to try ([MatMul], [Convolution]), and values on which kernels fail if they
// fail at all ([NearTies], [Wild]). It runs one primitive with every set of kernels ([Compare])
// or with one ([RunOn], [Eager]).
//
// It stands above engine/cpu, so tests of that package's parts are external ones.
package kerneltest
