//! Several clients of one daemon: whoever is slow, gone or rude costs nobody else anything, and nobody misses anything.
