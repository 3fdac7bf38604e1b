/* The one place that chooses among sets of tiles; and quantising, of which they have the loops. */
#include "tile_sets.h"

#include "quantize.h"

/* Asks for no more than is needed: an answer can take long on virtual machines. */
const etude_tiles *etude_tiles_at(size_t index) {
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX512_VNNI) && index-- == 0) return &etude_tiles_avx512_vnni;
  if (etude_isa_has(ETUDE_ISA_AVX512) && index-- == 0) return &etude_tiles_avx512;
#endif
#if defined(ETUDE_WITH_AVX_VNNI)
  if (etude_isa_has(ETUDE_ISA_AVX_VNNI) && index-- == 0) return &etude_tiles_avx_vnni;
#endif
#if defined(ETUDE_WITH_X86_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_AVX2) && index-- == 0) return &etude_tiles_avx2;
#endif
#if defined(ETUDE_WITH_AARCH64_VARIANTS)
  if (etude_isa_has(ETUDE_ISA_I8MM) && index-- == 0) return &etude_tiles_i8mm;
  if (etude_isa_has(ETUDE_ISA_DOTPROD) && index-- == 0) return &etude_tiles_dotprod;
#endif
#if defined(__wasm_simd128__)
  if (index-- == 0) return &etude_tiles_simd128; /* a module is built for it or is not */
#endif
#if defined(ETUDE_WITH_DSP)
  if (index-- == 0) return &etude_tiles_cortex_m;
#endif
  return index == 0 ? &etude_tiles_plain : NULL;
}

const etude_tiles *etude_tiles_select(void) { return etude_tiles_at(0); }

etude_row_scale etude_quantize_row(int8_t *q, const float *x, size_t count) {
  return etude_tiles_select()->quantize_row(q, x, count);
}
