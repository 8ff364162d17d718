package admin_test

import "github.com/tasq-dev/tasq/store/sqlite"

var memory = sqlite.Memory
