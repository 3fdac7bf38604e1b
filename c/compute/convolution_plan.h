/* How a convolution is laid out and divided: what packing and running have in common. */
#ifndef ETUDE_COMPUTE_CONVOLUTION_PLAN_H_
#define ETUDE_COMPUTE_CONVOLUTION_PLAN_H_

#include "tiles.h"

/* A transposed convolution is one convolution for each phase, which is the outputs whose places leave the same rest
   when divided by the strides: taps whose inputs fall between are never looked at. Others have one phase. */
typedef struct etude_convolution_phase {
  uint32_t y, x;               /* of the first output */
  uint32_t tap_rows, tap_cols; /* of the kernel that take part */
  size_t height, width;        /* outputs of an image */
} etude_convolution_phase;

typedef struct etude_convolution_plan {
  const etude_tiles *tiles;
  const etude_tile_set *set;
  bool depthwise;
  bool merged;       /* a row of the kernel is one tap, as its inputs lie beside each other and are few */
  uint32_t winograd; /* outputs of a tile in each direction; 0 = none of that */
  uint32_t phases;
  size_t x_size, y_size;        /* bytes of an element */
  size_t panels;                /* of a group and phase */
  size_t last_cols, last_width; /* of the last panel */
  size_t padding_offset;        /* of a pixel of padding in the packed weights */
  size_t packed_size;
} etude_convolution_plan;

etude_convolution_plan etude_convolution_plan_of(const etude_convolution *c);

etude_convolution_phase etude_convolution_phase_of(const etude_convolution *c, uint32_t index);

/* Whether row (or column) `k` of the kernel reaches outputs at `first` plus multiples of the stride. */
bool etude_convolution_reaches(const etude_convolution *c, uint32_t first, size_t pad, uint32_t dilation,
                               uint32_t stride, uint32_t k);

/* Taps and inputs of each tap in the panels of a phase. */
size_t etude_convolution_panel_taps(const etude_convolution_plan *plan, const etude_convolution_phase *phase);
size_t etude_convolution_panel_depth(const etude_convolution *c, const etude_convolution_plan *plan);

/* Where piece `part` of `parts` of [0, count) begins. */
static inline size_t etude_share(size_t count, size_t part, size_t parts) {
  return count / parts * part + (part < count % parts ? part : count % parts);
}

/* The first row of tile `tile` of the `tiles` that `rows` are done by. Tiles are built for even numbers of rows, or for odd
   ones (tile_sets.h): the former share pairs of rows evenly, the latter are full but for the last. */
static inline size_t etude_tile_begin(const etude_tile_set *set, size_t rows, size_t tile, size_t tiles) {
  const size_t begin = set->rows % 2 == 0 ? etude_share((rows + 1) / 2, tile, tiles) * 2 : tile * set->rows;
  return begin < rows ? begin : rows;
}

/* Where weight (out channel, tap, input) lies. */
static inline size_t etude_weight_place(const etude_convolution *c, const etude_weights *w, size_t out, size_t tap,
                                        size_t in) {
  const size_t tap_stride = w->tap_stride != 0 ? w->tap_stride : c->in_channels * w->in_stride;
  return out * w->out_stride + tap * tap_stride + in * w->in_stride;
}

/* Where the panels of a phase lie in the packed weights: those of each group after each other. */
typedef struct etude_convolution_panels {
  size_t offset; /* of the first */
  size_t size;   /* of a panel that is as wide as can be */
  size_t group_size;
} etude_convolution_panels;

etude_convolution_panels etude_convolution_panels_of(const etude_convolution *c, const etude_convolution_plan *plan,
                                                     uint32_t phase);

/* What convolution_winograd.c does of each step, where the plan says so. A run has at most as many parts as units. */
size_t etude_winograd_packed_size(const etude_convolution *c, const etude_convolution_plan *plan);
void etude_winograd_pack_panel(const etude_convolution *c, const etude_convolution_plan *plan,
                               const etude_weights *weights, void *packed, size_t panel);
size_t etude_winograd_scratch_size(const etude_convolution *c, const etude_convolution_plan *plan);
size_t etude_winograd_units(const etude_convolution *c, const etude_convolution_plan *plan);
void etude_winograd_run(const etude_convolution *c, const etude_convolution_plan *plan, const char *packed,
                        const etude_convolution_io *io, size_t part, size_t parts, char *scratch);

#endif /* ETUDE_COMPUTE_CONVOLUTION_PLAN_H_ */
