/* See pooling.h. The innermost loops go over channels. */
#include "pooling.h"

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

#define MAX_POOL(name, type, least)                                                          \
  void name(const etude_pooling *p, const type *x, type *y, size_t row) {                    \
    const span rows = rows_of(p, row);                                                       \
    for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {                         \
      const span cols = cols_of(p, ox);                                                      \
      for (size_t c = 0; c < p->channels; ++c) y[c] = (least);                               \
      for (size_t ky = rows.begin; ky < rows.end; ++ky) {                                    \
        for (size_t kx = cols.begin; kx < cols.end; ++kx) {                                  \
          const type *pixel = x + pixel_of(p, &rows, &cols, ky, kx) * p->channels;           \
          for (size_t c = 0; c < p->channels; ++c) y[c] = y[c] > pixel[c] ? y[c] : pixel[c]; \
        }                                                                                    \
      }                                                                                      \
    }                                                                                        \
  }

MAX_POOL(etude_max_pool_floats, float, -etude_infinity())
MAX_POOL(etude_max_pool_int8, int8_t, INT8_MIN)
MAX_POOL(etude_max_pool_uint8, uint8_t, 0)

void etude_average_pool_floats(const etude_pooling *p, const float *x, float *y, size_t row) {
  const span rows = rows_of(p, row);
  for (size_t ox = 0; ox < p->out_width; ++ox, y += p->channels) {
    const span cols = cols_of(p, ox);
    const size_t count = (rows.end - rows.begin) * (cols.end - cols.begin);
    for (size_t c = 0; c < p->channels; ++c) y[c] = 0.0f;
    for (size_t ky = rows.begin; ky < rows.end; ++ky) {
      for (size_t kx = cols.begin; kx < cols.end; ++kx) {
        const float *pixel = x + pixel_of(p, &rows, &cols, ky, kx) * p->channels;
        for (size_t c = 0; c < p->channels; ++c) y[c] += pixel[c];
      }
    }
    for (size_t c = 0; c < p->channels; ++c) y[c] /= (float)count;
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

/* ---- means ---- */

#define MEAN_CHUNK 64u

void etude_mean_floats(float *y, const float *x, size_t pixel, size_t pixels, size_t channels) {
  for (size_t c = 0; c < channels; ++c) y[c] = 0.0f;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < channels; ++c) y[c] += x[i * pixel + c];
  }
  for (size_t c = 0; c < channels; ++c) y[c] /= (float)pixels;
}

void etude_mean_bytes(const etude_mean_bytes_params *p, uint8_t *y, const uint8_t *x, size_t pixel, size_t pixels,
                      size_t channels) {
  const uint8_t mask = p->from.low == 0 ? 0 : 0x80; /* int8 plus 128 are counted */
  const int32_t zero = (p->from.zero - p->from.low) * (int32_t)pixels;
  const float factor = p->from.scale / p->to.scale / (float)pixels;
  int32_t sums[MEAN_CHUNK];
  for (size_t c = 0; c < channels; c += MEAN_CHUNK) {
    const size_t n = channels - c < MEAN_CHUNK ? channels - c : MEAN_CHUNK;
    for (size_t k = 0; k < n; ++k) sums[k] = -zero;
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t k = 0; k < n; ++k) sums[k] += (uint8_t)(x[i * pixel + c + k] ^ mask);
    }
    for (size_t k = 0; k < n; ++k) {
      float value = (float)sums[k] * factor + (float)p->to.zero;
      value = value < (float)p->high ? value : (float)p->high;
      value = value > (float)p->low ? value : (float)p->low;
      y[c + k] = (uint8_t)etude_round_within(value);
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
  const blend v = blend_of(r, row, r->height, r->out_height);
  const float *top = x + v.first * r->width * r->channels, *bottom = x + v.second * r->width * r->channels;
  for (size_t ox = 0; ox < r->out_width; ++ox, y += r->channels) {
    const blend h = blend_of(r, ox, r->width, r->out_width);
    const size_t a = h.first * r->channels, b = h.second * r->channels;
    for (size_t c = 0; c < r->channels; ++c) {
      const float above = top[a + c] + (top[b + c] - top[a + c]) * h.share;
      const float below = bottom[a + c] + (bottom[b + c] - bottom[a + c]) * h.share;
      y[c] = above + (below - above) * v.share;
    }
  }
}
