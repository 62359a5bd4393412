// Package pages lets large buffers lie in huge pages, where the system has them for
// who asks (madvise(2), transparent huge pages). Memory that is read once arrives
// faster from them: fewer addresses are translated, and what fetches ahead does not
// stop every 4 KiB.
//
// Invariant: it changes how fast memory is, never what is in it. Where the system
// does not support it nothing happens.
package pages

// size is that of a huge page.
const size = 2 << 20
