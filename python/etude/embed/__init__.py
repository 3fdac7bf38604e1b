"""Programs as C: what `etude embed`, `etude kernels` and `etude memory` are made of."""
