package desk

import "io/fs"

// owned holds of every file: directories for temporary files are each user's own there.
func owned(fs.FileInfo) bool { return true }
