"""Takes out of the store: erased runs, which leave tombstones, runs past their time, texts of thinned runs."""
