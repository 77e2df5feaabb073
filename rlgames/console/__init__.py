"""The console: words in, sentences out; what all programs share at the command line."""
