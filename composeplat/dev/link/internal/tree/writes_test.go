package tree

import "testing"

func TestWhenFewFilesAreFinished(t *testing.T) {
	type event struct {
		name string
		what action
	}
	for name, test := range map[string]struct {
		events   []event
		finished bool
	}{
		"nothing known":            {nil, false},
		"written and closed":       {[]event{{"a", written}, {"a", closed}}, true},
		"still open":               {[]event{{"a", written}}, false},
		"opened again":             {[]event{{"a", closed}, {"a", written}}, false},
		"new":                      {[]event{{"a", made}, {"a", written}, {"a", closed}}, true},
		"new, by a rename":         {[]event{{"a~", made}, {"a~", closed}, {"a~", gone}, {"a", arrived}}, true},
		"deleted":                  {[]event{{"a", gone}}, false},
		"old name, before the new": {[]event{{"a", gone}, {"a~", arrived}}, false},
		"old name, new file":       {[]event{{"a", gone}, {"a~", arrived}, {"a", made}, {"a", closed}}, true},
		"another one is open":      {[]event{{"a", closed}, {"b", written}}, false},
	} {
		var found writes
		for _, event := range test.events {
			found.record(event.name, event.what)
		}
		if found.areFinished() != test.finished {
			t.Errorf("%s: %v", name, found.areFinished())
		}
	}
}

func TestManyFilesAreNotFinished(t *testing.T) {
	var found writes
	for range maxFinished {
		found.record(string(rune('a'+len(found.files))), closed)
	}
	if !found.areFinished() {
		t.Error("a few files are finished")
	}
	found.record("more", closed)
	if found.areFinished() {
		t.Error("many files are finished")
	}
}
