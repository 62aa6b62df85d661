// Package filelock takes the advisory lock of an open file, for processes that share a folder: the one that serves
// a database file, and those that take turns at a folder of content files.
//
// The lock is of the open file and not of its text, which may be read and written by others meanwhile. It ends with
// Unlock, with the file, and with the process. It is used by store/sqlite and content.
package filelock
