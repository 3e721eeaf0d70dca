//go:build !linux || portable

package beneath

import "testing"

// bothWays runs a test with the only way of resolution that there is here.
func bothWays(t *testing.T, test func(t *testing.T)) { t.Run("by Go", test) }
