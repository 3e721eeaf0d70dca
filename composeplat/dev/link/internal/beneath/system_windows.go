package beneath

import "io/fs"

// nonblocking is nothing here: no file system has pipes.
const nonblocking = 0

func fileNumber(fs.FileInfo) uint64 { return 0 }
