"""The console: words in, sentences out; shared by all programs."""
