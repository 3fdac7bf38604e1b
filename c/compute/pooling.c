/* See pooling.h. The loops over channels are those of rows.h. */
#include "pooling.h"

#include <string.h>

#include "floats.h"
#include "rows.h"

/* The part of a window that lies inside of the image, along one side: kernel positions [begin, end). */
typedef struct span {
  size_t begin, end;
  ptrdiff_t first; /* pixel of kernel position 0 */
} span;

static span span_of(size_t out, size_t stride, size_t pad, size_t kernel, size_t dilation, size_t size) {
  span s = {0, kernel, (ptrdiff_t)(out * stride) - (ptrdiff_t)pad};
  if (s.first < 0) s.begin = ((size_t)-s.first + dilation - 1) / dilation;
  const ptrdiff_t room = (ptrdiff_t)size - s.first; /* pixels from the first one to the end */
  const size_t fit = room > 0 ? ((size_t)room + dilation - 1) / dilation : 0;
  if (fit < s.end) s.end = fit;
  if (s.begin > s.end) s.begin = s.end;
  return s;
}

static span rows_of(const etude_pooling *p, size_t row) {
  return span_of(row, p->stride_height, p->pad_top, p->kernel_height, p->dilation_height, p->height);
}

static span cols_of(const etude_pooling *p, size_t col) {
  return span_of(col, p->stride_width, p->pad_left, p->kernel_width, p->dilation_width, p->width);
}

/* Pixel of a kernel position inside of the image. */
static size_t pixel_of(const etude_pooling *p, const span *rows, const span *cols, size_t ky, size_t kx) {
  const size_t y = (size_t)(rows->first + (ptrdiff_t)(ky * p->dilation_height));
  return y * p->width + (size_t)(cols->first + (ptrdiff_t)(kx * p->dilation_width));
}

/* Pixels of a window, some at a time. */
#define TAPS 32u

typedef struct window {
  const etude_pooling *p;
  span rows, cols;
  size_t ky, kx;
} window;

static window window_of(const etude_pooling *p, size_t row, size_t col) {
  window w = {p, rows_of(p, row), cols_of(p, col), 0, 0};
  w.ky = w.rows.begin;
  w.kx = w.cols.begin;
  return w;
}

static size_t window_count(const window *w) { return (w->rows.end - w->rows.begin) * (w->cols.end - w->cols.begin); }

/* Places of the next pixels, counted in elements; how many there are, at most `most`. */
static size_t next_taps(window *w, size_t *places, size_t most) {
  size_t count = 0;
  if (w->cols.begin == w->cols.end) return 0;
  while (count < most && w->ky < w->rows.end) {
    places[count++] = pixel_of(w->p, &w->rows, &w->cols, w->ky, w->kx) * w->p->channels;
    if (++w->kx < w->cols.end) continue;
    w->kx = w->cols.begin;
    ++w->ky;
  }
  return count;
}

/* The first pixels give a result, to which the others are put, some at a time. */
void etude_max_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row, float low, float high) {
  const etude_rows *rows = etude_rows_select();
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {
    window w = window_of(p, row, ox);
    size_t places[TAPS];
    const float *taps[TAPS + 1];
    size_t count = next_taps(&w, places, TAPS), have = 0;
    if (count == 0) {
      for (size_t c = 0; c < p->channels; ++c) y[c] = low;
    }
    while (count > 0) {
      for (size_t t = 0; t < count; ++t) taps[have + t] = x + places[t];
      rows->pool_max(y, taps, have + count, p->channels, low, high);
      taps[0] = y;
      have = 1;
      count = next_taps(&w, places, TAPS);
    }
  }
}

void etude_max_pool_int8(const etude_pooling *p, const int8_t *x, int8_t *y, size_t row, int8_t low, int8_t high) {
  const etude_rows *rows = etude_rows_select();
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {
    window w = window_of(p, row, ox);
    size_t places[TAPS];
    const int8_t *taps[TAPS + 1];
    size_t count = next_taps(&w, places, TAPS), have = 0;
    if (count == 0) memset(y, low, p->channels);
    while (count > 0) {
      for (size_t t = 0; t < count; ++t) taps[have + t] = x + places[t];
      rows->pool_max_s8(y, taps, have + count, p->channels, low, high);
      taps[0] = y;
      have = 1;
      count = next_taps(&w, places, TAPS);
    }
  }
}

/* Rare, and therefore simple. */
void etude_max_pool_uint8(const etude_pooling *p, const uint8_t *x, uint8_t *y, size_t row, uint8_t low, uint8_t high) {
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {
    window w = window_of(p, row, ox);
    size_t place;
    memset(y, low, p->channels);
    while (next_taps(&w, &place, 1) != 0) {
      for (size_t c = 0; c < p->channels; ++c) y[c] = y[c] > x[place + c] ? y[c] : x[place + c];
    }
    for (size_t c = 0; c < p->channels; ++c) y[c] = y[c] < high ? y[c] : high;
  }
}

void etude_average_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row, float low, float high) {
  const etude_rows *rows = etude_rows_select();
  const float infinity = etude_infinity();
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {
    window w = window_of(p, row, ox);
    const size_t all = window_count(&w);
    const float scale = 1.0f / (float)all;
    size_t places[TAPS];
    const float *taps[TAPS + 1];
    size_t count = next_taps(&w, places, TAPS), have = 0, done = count;
    if (count == 0) {
      for (size_t c = 0; c < p->channels; ++c) y[c] = infinity - infinity;
    }
    while (count > 0) {
      const bool last = done == all;
      for (size_t t = 0; t < count; ++t) taps[have + t] = x + places[t];
      rows->pool_sum(y, taps, have + count, p->channels, last ? scale : 1.0f, last ? low : -infinity,
                     last ? high : infinity);
      taps[0] = y;
      have = 1;
      count = next_taps(&w, places, TAPS);
      done += count;
    }
  }
}

void etude_arg_max_pool_floats(const etude_pooling *p, const float *x, float *y, int32_t *index, size_t row) {
  const span rows = rows_of(p, row);
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels, index += p->channels) {
    const span cols = cols_of(p, ox);
    for (size_t c = 0; c < p->channels; ++c) {
      y[c] = -etude_infinity();
      index[c] = 0;
    }
    for (size_t kx = cols.begin; kx < cols.end; ++kx) {
      for (size_t ky = rows.begin; ky < rows.end; ++ky) {
        const float *pixel = x + pixel_of(p, &rows, &cols, ky, kx) * p->channels;
        const int32_t place = (int32_t)(kx * p->kernel_height + ky);
        for (size_t c = 0; c < p->channels; ++c) {
          if (!(pixel[c] > y[c])) continue;
          y[c] = pixel[c];
          index[c] = place;
        }
      }
    }
  }
}

/* ---- resizing ---- */

/* Two neighbours, and how much of the second. */
typedef struct blend {
  size_t first, second;
  float share;
} blend;

static blend blend_of(const etude_resize *r, size_t out, size_t size, size_t out_size) {
  float at = 0.0f;
  blend b;
  if (r->align_corners) {
    at = out_size > 1 ? (float)out * ((float)(size - 1) / (float)(out_size - 1)) : 0.0f;
  } else if (r->legacy) {
    at = (float)out * ((float)size / (float)out_size);
  } else {
    at = ((float)out + 0.5f) * ((float)size / (float)out_size) - 0.5f;
  }
  if (at < 0.0f) at = 0.0f;
  b.first = (size_t)at < size - 1 ? (size_t)at : size - 1;
  b.second = b.first + 1 < size ? b.first + 1 : b.first;
  b.share = at - (float)b.first;
  return b;
}

void etude_resize_floats(const etude_resize *r, const float *x, float *y, size_t row) {
  const etude_rows *rows = etude_rows_select();
  const blend v = blend_of(r, row, r->height, r->out_height);
  const float *top = x + v.first * r->width * r->channels, *bottom = x + v.second * r->width * r->channels;
  for (size_t ox = 0; ox < r->out_width; ++ox, y += r->channels) {
    const blend h = blend_of(r, ox, r->width, r->out_width);
    const size_t a = h.first * r->channels, b = h.second * r->channels;
    rows->bilinear(y, top + a, top + b, bottom + a, bottom + b, r->channels, h.share, v.share);
  }
}
