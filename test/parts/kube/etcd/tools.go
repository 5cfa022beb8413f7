//go:build tools

// Package tools pins the programs that the tests build; nothing else imports it.

package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)
