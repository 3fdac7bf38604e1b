/* See gemm.h. The blocked product goes over blocks of columns; of each it takes some depth of b, copied together
 * ("packed") where b is not laid out for it, and multiplies all rows of a with it, tile by tile (simd.h). Work is
 * divided into units, (batch, rows, columns), of which each task gets a run; tasks share nothing but read-only
 * memory, and a worker's scratch memory is allocated beforehand. */
#include "gemm.h"

#include "complexmath.h"
#include "compute/isa.h"
#include "compute/rows.h"
#include "compute/simd.h"
#include "compute/words.h"
#include "dtype.h"

/* From here on a is read often enough for packing b to pay. */
#define PACK_ROWS 24u
/* Blocks end at multiples of this, so that loops along the depth go by whole vectors. */
#define DEPTH_STEP 64u
/* Where the product is shallow, blocks are so many times as wide, so that rows of the result are written in longer runs. */
#define MOST_WIDER 8u
/* Multiplications that are worth a task. */
#define TASK_WORK 1048576.0
/* Units of rows, where there are too few of columns, for each worker. */
#define ROW_UNITS_PER_WORKER 2u
/* Up to this many rows, dot products of at least this depth beat packing a transposed b. */
#define DOT_ROWS 12u
#define DOT_DEPTH 128u
/* The same where b is int8, which is widened anew for each row. */
#define BYTE_DOT_ROWS 4u
/* Columns per unit for a product with a vector. */
#define VECTOR_COLS 512u

typedef struct plan plan;
typedef void (*unit_function)(const plan *p, const size_t batch[2], size_t i0, size_t rows, size_t j0, size_t cols,
                              float *scratch);

struct plan {
  const etude_gemm *g;
  const etude_simd *simd;
  unit_function run;
  size_t unit_rows, unit_cols;    /* rows and columns of a unit; the last ones are smaller */
  size_t row_units, units, tasks; /* units of a column of units, of all, and tasks to spread them over */
  size_t depth;                   /* of a block */
  bool pack_a, pack_b;
  size_t workers;
  size_t a_floats, worker_floats; /* scratch memory for a, and in all, of a worker */
  float *scratch;
};

etude_gemm etude_gemm_of(size_t m, size_t n, size_t k) {
  etude_gemm g;
  memset(&g, 0, sizeof g);
  g.m = m;
  g.n = n;
  g.k = k;
  g.batches[0] = g.batches[1] = 1;
  g.alpha.tag = g.beta.tag = ETUDE_VALUE_INT;
  g.alpha.i = g.beta.i = 1;
  g.alpha.d = g.beta.d = 1.0;
  return g;
}

static void *element(const etude_matrix *matrix, const size_t batch[2], size_t row, size_t col) {
  const size_t first = batch[0] * matrix->batch[0] + batch[1] * matrix->batch[1];
  const size_t index = first + row * matrix->row + col * matrix->col;
  return (char *)matrix->data + index * etude_scalar_size(matrix->dtype);
}

static size_t divide_up(size_t a, size_t b) { return a / b + (a % b != 0); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The columns of b that tiles read for `cols` of them. */
static size_t columns_read(const etude_simd *simd, size_t cols) {
  const size_t rest = cols % simd->tile_cols;
  if (rest == 0) return cols;
  return cols - rest + (rest <= simd->lanes ? simd->lanes : simd->tile_cols);
}

/* ---- blocked product ---- */

/* `rows` rows of a, k by k: element (i, k) comes to k * rows + i. */
static void pack_floats(const etude_matrix *a, const float *from, size_t rows, size_t depth, float *out) {
  for (size_t k = 0; k < depth; ++k) {
    for (size_t i = 0; i < rows; ++i) out[k * rows + i] = from[i * a->row + k * a->col];
  }
}

/* The same, row after row. */
static void pack_rows(const etude_gemm *g, const size_t batch[2], size_t i0, size_t rows, size_t k0, size_t depth,
                      float *out) {
  const size_t inner = g->a_inner == 0 ? g->k : g->a_inner;
  for (size_t i = 0; i < rows; ++i) {
    size_t k = k0;
    while (k < k0 + depth) {
      const size_t first = k % inner;
      const size_t run = inner - first < k0 + depth - k ? inner - first : k0 + depth - k;
      const char *from = (const char *)element(&g->a, batch, i0 + i, first);
      from += k / inner * g->a_outer * etude_scalar_size(g->a.dtype);
      etude_load_floats(out, from, g->a.dtype, g->a.col, run);
      out += run;
      k += run;
    }
  }
}

/* Point the tile to its rows of a, from i0, through scratch memory where they have to be copied. */
static void place_rows(const plan *p, etude_tile *tile, const etude_gemm_block *block, size_t i0, float *scratch) {
  const etude_gemm *g = p->g;
  const void *from = g->a_inner == 0 ? element(&g->a, block->batch, i0, block->k) : NULL;
  tile->a = p->pack_a ? scratch : from;
  tile->a_row = g->a.row;
  tile->a_col = g->a.col;
  if (!p->pack_a) return;
  if (g->a_inner == 0 && g->a.dtype == ETUDE_FLOAT) {
    pack_floats(&g->a, from, tile->rows, block->depth, scratch);
    tile->a_row = 1;
    tile->a_col = tile->rows;
    return;
  }
  pack_rows(g, block->batch, i0, tile->rows, block->k, block->depth, scratch);
  tile->a_row = block->depth;
  tile->a_col = 1;
}

/* 16 columns at a time, so that each is read along its own cache lines. */
static void pack_columns(const float *from, size_t from_col, size_t depth, size_t cols, float *out, size_t out_row) {
  for (size_t j0 = 0; j0 < cols; j0 += 16) {
    const size_t width = cols - j0 < 16 ? cols - j0 : 16;
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < width; ++j) out[k * out_row + j0 + j] = from[(j0 + j) * from_col + k];
    }
  }
}

/* Columns of int8, each by its scale: the floats that dequantising makes. The block that comes next is asked for, as
   its columns lie apart. */
static void pack_bytes(const etude_gemm *g, const etude_gemm_block *block, float *out, size_t out_row) {
  enum { COLS = 16, LINE = 64 };
  const etude_rows *rows = etude_rows_select();
  float floats[COLS * ETUDE_GEMM_DEPTH];
  for (size_t j0 = 0; j0 < block->cols; j0 += COLS) {
    const size_t cols = smaller(block->cols - j0, COLS);
    for (size_t j = 0; j < cols; ++j) {
      const uint8_t *from = element(&g->b, block->batch, block->k, block->j + j0 + j);
      for (size_t k = 0; k < block->depth; k += LINE) ETUDE_PREFETCH(from + k, block->depth);
      rows->dequantize_signed(floats + j * block->depth, from, block->depth, 0, g->b_scales[block->j + j0 + j]);
    }
    etude_transpose_words(out + j0, (ptrdiff_t)out_row, floats, (ptrdiff_t)block->depth, block->depth, cols);
  }
}

static void pack_matrix(const etude_gemm *g, const etude_gemm_block *block, float *out, size_t out_row) {
  const etude_matrix *b = &g->b;
  if (b->dtype == ETUDE_FLOAT && b->row == 1) {
    pack_columns(element(b, block->batch, block->k, block->j), b->col, block->depth, block->cols, out, out_row);
    return;
  }
  for (size_t k = 0; k < block->depth; ++k) {
    const void *from = element(b, block->batch, block->k + k, block->j);
    if (b->dtype == ETUDE_FLOAT && b->col == 1) {
      memcpy(out + k * out_row, from, block->cols * sizeof *out);
    } else {
      etude_load_floats(out + k * out_row, from, b->dtype, b->col, block->cols);
    }
  }
}

static void pack_b(const etude_gemm *g, const etude_gemm_block *block, float *out, size_t out_row) {
  if (block->depth == 0) return;
  if (g->pack != NULL) {
    g->pack(g->pack_arg, block, out, out_row);
  } else if (g->b_scales != NULL) {
    pack_bytes(g, block, out, out_row);
  } else {
    pack_matrix(g, block, out, out_row);
  }
  if (out_row == block->cols) return;
  for (size_t k = 0; k < block->depth; ++k) {
    memset(out + k * out_row + block->cols, 0, (out_row - block->cols) * sizeof *out);
  }
}

/* A tile whose result is not float: there is only one block in depth, and base and c are converted here. */
static void tile_converted(const plan *p, etude_tile *tile, const size_t batch[2], size_t i0, size_t j0) {
  const etude_gemm *g = p->g;
  float result[ETUDE_TILE_MAX_ROWS * ETUDE_TILE_MAX_COLS];
  float base[ETUDE_TILE_MAX_COLS];
  tile->c = result;
  tile->c_row = ETUDE_TILE_MAX_COLS;
  tile->c_col = 1;
  tile->base = NULL;
  p->simd->tile(tile);
  for (uint32_t i = 0; i < tile->rows; ++i) {
    float *row = result + i * ETUDE_TILE_MAX_COLS;
    if (g->base.data != NULL) {
      etude_load_floats(base, element(&g->base, batch, i0 + i, j0), g->base.dtype, g->base.col, tile->cols);
      for (uint32_t j = 0; j < tile->cols; ++j) row[j] += (float)g->beta.d * base[j];
    }
    etude_store_floats(element(&g->c, batch, i0 + i, j0), g->c.dtype, g->c.col, row, tile->cols);
  }
}

/* The tiles of `tile->rows` rows from i0 over a block of b, of which `b` is the start. */
static void run_tiles(const plan *p, etude_tile *tile, const etude_gemm_block *block, const float *b, size_t i0) {
  const etude_gemm *g = p->g;
  for (size_t j = 0; j < block->cols; j += p->simd->tile_cols) {
    tile->b = block->depth == 0 ? NULL : b + j;
    tile->cols = block->cols - j < p->simd->tile_cols ? (uint32_t)(block->cols - j) : p->simd->tile_cols;
    if (g->c.dtype != ETUDE_FLOAT) {
      tile_converted(p, tile, block->batch, i0, block->j + j);
      continue;
    }
    tile->c = element(&g->c, block->batch, i0, block->j + j);
    if (block->k != 0) {
      tile->base = tile->c;
    } else {
      tile->base = g->base.data == NULL ? NULL : element(&g->base, block->batch, i0, block->j + j);
    }
    p->simd->tile(tile);
  }
}

static void run_block(const plan *p, const etude_gemm_block *block, size_t i0, size_t rows, float *scratch) {
  const etude_gemm *g = p->g;
  const size_t strips = divide_up(rows, p->simd->tile_rows);
  const bool first = block->k == 0;
  const float *b = NULL;
  etude_tile tile;
  memset(&tile, 0, sizeof tile);
  tile.depth = block->depth;
  tile.alpha = g->k == 0 ? 1.0f : (float)g->alpha.d;
  tile.base_row = first ? g->base.row : g->c.row;
  tile.base_col = first ? g->base.col : g->c.col;
  tile.c_row = g->c.row;
  tile.c_col = g->c.col;
  tile.b_row = g->b.row;
  if (block->depth == 0) {
    b = NULL; /* an empty sum reads nothing, and there may be nothing to point to */
  } else if (p->pack_b || columns_read(p->simd, block->cols) != block->cols) {
    tile.b_row = columns_read(p->simd, block->cols);
    pack_b(g, block, scratch + p->a_floats, tile.b_row);
    b = scratch + p->a_floats;
  } else {
    b = element(&g->b, block->batch, block->k, block->j);
  }
  for (size_t s = 0; s < strips; ++s) {
    const size_t from = i0 + s * rows / strips;
    tile.rows = (uint32_t)(i0 + (s + 1) * rows / strips - from);
    place_rows(p, &tile, block, from, scratch);
    run_tiles(p, &tile, block, b, from);
  }
}

static void unit_blocked(const plan *p, const size_t batch[2], size_t i0, size_t rows, size_t j0, size_t cols,
                         float *scratch) {
  const size_t whole = p->g->k, blocks = whole == 0 ? 1 : divide_up(whole, p->depth);
  const size_t step = smaller(divide_up(divide_up(whole, blocks), DEPTH_STEP) * DEPTH_STEP, p->depth);
  etude_gemm_block block;
  block.batch[0] = batch[0];
  block.batch[1] = batch[1];
  block.j = j0;
  block.cols = cols;
  block.k = 0;
  do {
    block.depth = smaller(step, whole - block.k);
    run_block(p, &block, i0, rows, scratch);
    block.k += block.depth;
  } while (block.k < whole);
}

/* ---- products with one row, or few of them ---- */

/* One row of a, rows of b and c dense: b is read once, in its order. */
static void unit_vector(const plan *p, const size_t batch[2], size_t i0, size_t rows, size_t j0, size_t cols,
                        float *scratch) {
  const etude_gemm *g = p->g;
  float *y = element(&g->c, batch, i0, j0);
  (void)rows;
  (void)scratch;
  if (g->base.data == NULL) {
    memset(y, 0, cols * sizeof *y);
  } else {
    etude_load_floats(y, element(&g->base, batch, i0, j0), ETUDE_FLOAT, g->base.col, cols);
  }
  p->simd->accumulate(y, cols, element(&g->a, batch, i0, 0), g->a.col, (float)g->alpha.d, element(&g->b, batch, 0, j0),
                      g->b.row, g->k);
}

/* Few rows of a, columns of b dense; of floats, or of int8. */
static void unit_dots(const plan *p, const size_t batch[2], size_t i0, size_t rows, size_t j0, size_t cols,
                      float *scratch) {
  const etude_gemm *g = p->g;
  (void)scratch;
  for (size_t j = j0; j < j0 + cols; j += 4) {
    const uint32_t count = j0 + cols - j < 4 ? (uint32_t)(j0 + cols - j) : 4;
    for (size_t i = i0; i < i0 + rows; ++i) {
      float results[4];
      const void *x = element(&g->a, batch, i, 0), *w = element(&g->b, batch, 0, j);
      if (g->b_scales != NULL) {
        p->simd->byte_dots(results, x, w, g->b.col, count, g->k);
        for (uint32_t c = 0; c < count; ++c) results[c] *= g->b_scales[j + c];
      } else {
        p->simd->dots(results, x, w, g->b.col, count, g->k);
      }
      for (uint32_t c = 0; c < count; ++c) {
        const float base = g->base.data == NULL ? 0.0f : *(const float *)element(&g->base, batch, i, j + c);
        *(float *)element(&g->c, batch, i, j + c) = base + (float)g->alpha.d * results[c];
      }
    }
  }
}

/* ---- planning ---- */

static void run_unit(const plan *p, size_t unit, float *scratch) {
  const etude_gemm *g = p->g;
  const size_t col_units = divide_up(g->n, p->unit_cols);
  const size_t i0 = unit % p->row_units * p->unit_rows;
  const size_t j0 = unit / p->row_units % col_units * p->unit_cols;
  const size_t matrix = unit / p->row_units / col_units;
  const size_t batch[2] = {matrix / g->batches[1], matrix % g->batches[1]};
  const size_t rows = g->m - i0 < p->unit_rows ? g->m - i0 : p->unit_rows;
  const size_t cols = g->n - j0 < p->unit_cols ? g->n - j0 : p->unit_cols;
  p->run(p, batch, i0, rows, j0, cols, scratch);
}

static void run_task(void *arg, size_t index, size_t worker) {
  const plan *p = arg;
  const size_t each = p->units / p->tasks, more = p->units % p->tasks;
  const size_t first = index * each + (index < more ? index : more);
  const size_t count = each + (index < more);
  float *scratch = p->scratch == NULL ? NULL : p->scratch + worker * p->worker_floats;
  for (size_t u = first; u < first + count; ++u) run_unit(p, u, scratch);
}

static void choose_method(plan *p) {
  const etude_gemm *g = p->g;
  const bool plain = g->pack == NULL && g->a_inner == 0 && g->c.dtype == ETUDE_FLOAT && g->k != 0;
  const size_t dot_rows = g->b_scales != NULL ? BYTE_DOT_ROWS : g->k < DOT_DEPTH ? 2 : DOT_ROWS;
  if (plain && g->m == 1 && g->b.col == 1 && g->c.col == 1 && g->b_scales == NULL) {
    p->run = unit_vector;
    p->unit_cols = VECTOR_COLS;
    return;
  }
  if (plain && g->m <= dot_rows && g->b.row == 1 && g->a.col == 1) {
    p->run = unit_dots;
    return;
  }
  p->run = unit_blocked;
  p->pack_a = g->a_inner != 0 || g->a.dtype != ETUDE_FLOAT || (g->a.col != 1 && g->n > 32);
  p->pack_b = g->pack != NULL || g->b.dtype != ETUDE_FLOAT || g->b.col != 1 || g->m >= PACK_ROWS;
  /* Only float results can be added to, block by block. */
  p->depth = g->c.dtype == ETUDE_FLOAT && g->k > ETUDE_GEMM_DEPTH ? ETUDE_GEMM_DEPTH : g->k;
  if (p->depth > ETUDE_GEMM_DEPTH) p->unit_cols = p->simd->tile_cols;
  if (p->depth != 0 && p->depth <= ETUDE_GEMM_DEPTH / 2 && g->pack == NULL) {
    p->unit_cols = smaller(ETUDE_GEMM_DEPTH / p->depth, MOST_WIDER) * ETUDE_GEMM_COLS; /* as much memory */
  }
}

static void divide_work(plan *p) {
  const etude_gemm *g = p->g;
  const double work = (double)g->m * (double)g->n * (double)g->k * (double)g->batches[0] * (double)g->batches[1];
  const size_t matrices = g->batches[0] * g->batches[1];
  const size_t col_units = divide_up(g->n, p->unit_cols);
  const size_t most_row_units = smaller(p->workers * ROW_UNITS_PER_WORKER, g->m / PACK_ROWS);
  p->row_units = 1;
  if (p->workers > 1 && work > 2 * TASK_WORK && matrices * col_units < most_row_units) p->row_units = most_row_units;
  p->unit_rows = divide_up(g->m, p->row_units);
  p->row_units = divide_up(g->m, p->unit_rows);
  p->units = matrices * col_units * p->row_units;
  p->tasks = work >= (double)p->units * TASK_WORK ? p->units : work < TASK_WORK ? 1 : (size_t)(work / TASK_WORK);
}

/* Products that are smaller in a dimension may be done in another way, or have columns that do not fill tiles. */
static etude_status ask_for_any(etude_kernel_context *ctx, const plan *p) {
  const etude_gemm *g = p->g;
  const bool is_float = g->c.dtype == ETUDE_FLOAT;
  const size_t side = g->m > g->n ? g->m : g->n; /* of whichever becomes the columns */
  const size_t depth = smaller(g->k, ETUDE_GEMM_DEPTH);
  size_t floats = columns_read(p->simd, smaller(side, ETUDE_GEMM_COLS)) * depth;
  if (!is_float && floats < p->simd->tile_cols * g->k) floats = p->simd->tile_cols * g->k;
  if (p->pack_a || !is_float) floats += p->simd->tile_rows * (is_float ? depth : g->k);
  if (floats == 0) return ETUDE_OK;
  const size_t workers = p->tasks == 1 ? 1 : p->workers;
  return etude_kernel_scratch(ctx, workers * floats * sizeof(float)) == NULL ? ETUDE_OUT_OF_MEMORY : ETUDE_OK;
}

static etude_status find_scratch(etude_kernel_context *ctx, plan *p) {
  const size_t tile_cols = p->simd->tile_cols;
  const size_t widest = p->g->n < p->unit_cols ? p->g->n : p->unit_cols;
  size_t columns = columns_read(p->simd, widest);
  if (etude_kernel_is_asked(ctx) && (p->g->a.varies || p->g->b.varies)) return ask_for_any(ctx, p);
  if (p->run != unit_blocked) return ETUDE_OK;
  if (!p->pack_b && columns_read(p->simd, p->g->n) == p->g->n && p->unit_cols % tile_cols == 0) columns = 0;
  p->a_floats = p->pack_a ? p->simd->tile_rows * p->depth : 0;
  p->worker_floats = p->a_floats + columns * p->depth;
  if (p->worker_floats == 0) return ETUDE_OK;
  p->scratch = etude_kernel_scratch(ctx, (p->tasks == 1 ? 1 : p->workers) * p->worker_floats * sizeof(float));
  return p->scratch == NULL ? ETUDE_OUT_OF_MEMORY : ETUDE_OK;
}

/* ---- other element types ---- */

static void plain_double(const etude_gemm *g, const size_t batch[2], size_t i, size_t j, const void *row,
                         const void *col) {
  const double *a = row;
  const double *b = col;
  double sum = 0.0;
  for (size_t k = 0; k < g->k; ++k) sum += a[k] * b[k];
  if (g->k != 0) sum *= g->alpha.d;
  if (g->base.data != NULL) sum += g->beta.d * etude_element_double(element(&g->base, batch, i, j), g->base.dtype, 0);
  etude_element_set_double(element(&g->c, batch, i, j), g->c.dtype, 0, sum);
}

/* Unsigned, because integers wrap. */
static void plain_int(const etude_gemm *g, const size_t batch[2], size_t i, size_t j, const void *row,
                      const void *col) {
  const uint64_t *a = row;
  const uint64_t *b = col;
  uint64_t sum = 0;
  int64_t result;
  for (size_t k = 0; k < g->k; ++k) sum += a[k] * b[k];
  sum *= (uint64_t)g->alpha.i;
  if (g->base.data != NULL) {
    sum += (uint64_t)g->beta.i * (uint64_t)etude_element_int(element(&g->base, batch, i, j), g->base.dtype, 0);
  }
  memcpy(&result, &sum, sizeof result);
  etude_element_set_int(element(&g->c, batch, i, j), g->c.dtype, 0, result);
}

static void plain_complex(const etude_gemm *g, const size_t batch[2], size_t i, size_t j, const void *row,
                          const void *col) {
  const etude_complex *a = row;
  const etude_complex *b = col;
  etude_complex sum = {0, 0};
  for (size_t k = 0; k < g->k; ++k) sum = etude_complex_add(sum, etude_complex_mul(a[k], b[k]));
  if (g->k != 0) sum = etude_complex_scale(sum, g->alpha.d);
  if (g->base.data != NULL) {
    double base[2];
    etude_load_complexes(base, element(&g->base, batch, i, j), g->base.dtype, 1, 1);
    sum = etude_complex_add(sum, etude_complex_scale(etude_complex_of(base[0], base[1]), g->beta.d));
  }
  const double result[2] = {sum.re, sum.im};
  etude_store_complexes(element(&g->c, batch, i, j), g->c.dtype, 1, result, 1);
}

static void load_plain(void *out, const void *from, int32_t dtype, size_t stride, size_t count) {
  if (etude_dtype_is_complex(dtype)) {
    etude_load_complexes(out, from, dtype, stride, count);
  } else if (etude_dtype_is_float(dtype)) {
    etude_load_doubles(out, from, dtype, stride, count);
  } else {
    etude_load_ints(out, from, dtype, stride, count);
  }
}

/* Floats where they lie: small code, and no scratch memory. */
static etude_status run_in_place(etude_kernel_context *ctx, const etude_gemm *g) {
  size_t batch[2];
  SCRATCH_TAKEN(ctx);
  for (batch[0] = 0; batch[0] < g->batches[0]; ++batch[0]) {
    for (batch[1] = 0; batch[1] < g->batches[1]; ++batch[1]) {
      for (size_t i = 0; i < g->m; ++i) {
        TRY(etude_kernel_work(ctx, etude_steps(g->n, g->k)));
        for (size_t j = 0; j < g->n; ++j) {
          float sum = 0.0f;
          if (g->k != 0) {
            const float *a = element(&g->a, batch, i, 0);
            const float *b = element(&g->b, batch, 0, j);
            for (size_t k = 0; k < g->k; ++k) sum += a[k * g->a.col] * b[k * g->b.row];
            if (g->base.data != NULL) sum *= (float)g->alpha.d;
          }
          if (g->base.data != NULL) sum += (float)g->beta.d * *(const float *)element(&g->base, batch, i, j);
          *(float *)element(&g->c, batch, i, j) = sum;
        }
      }
    }
  }
  return ETUDE_OK;
}

static etude_status run_plain(etude_kernel_context *ctx, const etude_gemm *g) {
  const bool is_complex = etude_dtype_is_complex(g->c.dtype);
  const size_t line = g->k * (is_complex ? sizeof(etude_complex) : sizeof(double));
  char *scratch = NULL, *col = NULL;
  size_t batch[2];
  if (g->k != 0) {
    scratch = etude_kernel_scratch(ctx, 2 * line);
    if (scratch == NULL) return ETUDE_OUT_OF_MEMORY;
    col = scratch + line;
  }
  SCRATCH_TAKEN(ctx);
  for (batch[0] = 0; batch[0] < g->batches[0]; ++batch[0]) {
    for (batch[1] = 0; batch[1] < g->batches[1]; ++batch[1]) {
      for (size_t j = 0; j < g->n; ++j) {
        TRY(etude_kernel_work(ctx, etude_steps(g->m, g->k)));
        if (g->k != 0) load_plain(col, element(&g->b, batch, 0, j), g->b.dtype, g->b.row, g->k);
        for (size_t i = 0; i < g->m; ++i) {
          if (g->k != 0) load_plain(scratch, element(&g->a, batch, i, 0), g->a.dtype, g->a.col, g->k);
          if (is_complex) {
            plain_complex(g, batch, i, j, scratch, col);
          } else if (etude_dtype_is_float(g->c.dtype)) {
            plain_double(g, batch, i, j, scratch, col);
          } else {
            plain_int(g, batch, i, j, scratch, col);
          }
        }
      }
    }
  }
  return ETUDE_OK;
}

/* Tiles of floats can only add a base, so write beta * base to c and let them add that. */
static void scale_base(etude_gemm *g) {
  size_t batch[2];
  for (batch[0] = 0; batch[0] < g->batches[0]; ++batch[0]) {
    for (batch[1] = 0; batch[1] < g->batches[1]; ++batch[1]) {
      for (size_t i = 0; i < g->m; ++i) {
        const float *base = element(&g->base, batch, i, 0);
        float *c = element(&g->c, batch, i, 0);
        for (size_t j = 0; j < g->n; ++j) c[j * g->c.col] = (float)g->beta.d * base[j * g->base.col];
      }
    }
  }
  g->base = g->c;
}

static void transpose(etude_matrix *matrix) {
  const size_t row = matrix->row;
  matrix->row = matrix->col;
  matrix->col = row;
}

/* A product with a column is one with a row, seen from the other side. Whole columns are better written as rows. */
static void flip(etude_gemm *g) {
  const etude_matrix a = g->a;
  const size_t m = g->m;
  if (g->pack != NULL || g->a_inner != 0 || g->b_scales != NULL || g->m == 1) return;
  if (g->n != 1 && (g->c.col == 1 || g->c.row != 1)) return;
  g->a = g->b;
  g->b = a;
  g->m = g->n;
  g->n = m;
  transpose(&g->a);
  transpose(&g->b);
  transpose(&g->base);
  transpose(&g->c);
}

etude_status etude_gemm_run(etude_kernel_context *ctx, const etude_gemm *gemm) {
  etude_gemm g = *gemm;
  plan p;
  if (g.m == 0 || g.n == 0 || g.batches[0] == 0 || g.batches[1] == 0) return ETUDE_OK;
  if (g.k > SIZE_MAX / 1024) return etude_kernel_fail(ctx, ETUDE_OUT_OF_MEMORY, "inner dimension %z is too large", g.k);
  if (ETUDE_SMALL && ((ETUDE_DTYPES & ~(1u << ETUDE_FLOAT)) == 0 || g.c.dtype == ETUDE_FLOAT)) {
    return run_in_place(ctx, &g);
  }
  if (ETUDE_SMALL || g.c.dtype == ETUDE_DOUBLE || !etude_dtype_is_float(g.c.dtype)) return run_plain(ctx, &g);
  if (g.base.data != NULL && g.beta.d != 1.0 && g.c.dtype == ETUDE_FLOAT && !etude_kernel_is_asked(ctx)) scale_base(&g);
  if (g.k == 0) g.a = g.b = g.c; /* not read, but pointed into */
  flip(&g);
  memset(&p, 0, sizeof p);
  p.g = &g;
  p.simd = etude_simd_select();
  p.workers = etude_kernel_worker_count(ctx);
  p.unit_cols = ETUDE_GEMM_COLS;
  choose_method(&p);
  divide_work(&p);
  TRY(find_scratch(ctx, &p));
  SCRATCH_TAKEN(ctx);
  const uint64_t products = etude_steps(etude_steps(g.m, g.n), etude_steps(g.batches[0], g.batches[1]));
  TRY(etude_kernel_work(ctx, etude_steps(products, g.k / 16 + 1)));
  etude_kernel_parallel_for(ctx, p.tasks, run_task, &p);
  return ETUDE_OK;
}
