/* See inflate.h. Codes are read bit by bit: of each length the first code and the number of codes are known, and the
   symbols stand in the order of their codes. Section numbers are those of RFC 1951. */
#include "inflate.h"

#include <string.h>

enum { MOST_BITS = 15, MOST_SYMBOLS = 288, END_OF_BLOCK = 256 };

typedef struct stream {
  const uint8_t *in;
  size_t in_size, in_at; /* bytes */
  uint32_t bits, bit_count;
  uint8_t *out;
  size_t out_size, out_at;
  bool broken;
} stream;

typedef struct code {
  uint16_t count[MOST_BITS + 1]; /* of codes of each length */
  uint16_t symbols[MOST_SYMBOLS];
} code;

static uint32_t take(stream *s, uint32_t count) {
  while (s->bit_count < count) {
    if (s->in_at == s->in_size) {
      s->broken = true;
      return 0;
    }
    s->bits |= (uint32_t)s->in[s->in_at++] << s->bit_count;
    s->bit_count += 8;
  }
  const uint32_t taken = s->bits & ((1u << count) - 1u);
  s->bits >>= count;
  s->bit_count -= count;
  return taken;
}

/* 3.2.2: codes from their lengths. */
static void make_code(code *c, const uint8_t *lengths, uint32_t count) {
  uint16_t place[MOST_BITS + 2] = {0};
  memset(c, 0, sizeof *c);
  for (uint32_t i = 0; i < count; ++i) c->count[lengths[i]]++;
  c->count[0] = 0;
  for (uint32_t b = 1; b <= MOST_BITS; ++b) place[b + 1] = (uint16_t)(place[b] + c->count[b]);
  for (uint32_t i = 0; i < count; ++i) {
    if (lengths[i] != 0) c->symbols[place[lengths[i]]++] = (uint16_t)i;
  }
}

static uint32_t take_symbol(stream *s, const code *c) {
  uint32_t value = 0, first = 0, place = 0;
  for (uint32_t b = 1; b <= MOST_BITS && !s->broken; ++b) {
    value |= take(s, 1);
    if (value < first + c->count[b]) return c->symbols[place + value - first];
    place += c->count[b];
    first = (first + c->count[b]) << 1;
    value <<= 1;
  }
  s->broken = true;
  return END_OF_BLOCK;
}

/* 3.2.5: symbols behind 256 are lengths, and distances follow them. */
static void copy_back(stream *s, uint32_t symbol, const code *distances) {
  static const uint16_t lengths[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                     31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint16_t steps[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                   33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                   1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  const uint32_t which = symbol - END_OF_BLOCK - 1;
  if (which >= sizeof lengths / sizeof lengths[0]) {
    s->broken = true;
    return;
  }
  const size_t length = lengths[which] + (which < 8 || which == 28 ? 0u : take(s, which / 4 - 1));
  const uint32_t far = take_symbol(s, distances);
  if (s->broken || far >= sizeof steps / sizeof steps[0]) {
    s->broken = true;
    return;
  }
  const size_t distance = steps[far] + (far < 4 ? 0u : take(s, far / 2 - 1));
  if (s->broken || distance > s->out_at || length > s->out_size - s->out_at) {
    s->broken = true;
    return;
  }
  for (size_t i = 0; i < length; ++i, ++s->out_at) s->out[s->out_at] = s->out[s->out_at - distance];
}

static void read_coded(stream *s, const code *literals, const code *distances) {
  while (!s->broken) {
    const uint32_t symbol = take_symbol(s, literals);
    if (symbol == END_OF_BLOCK) return;
    if (symbol > END_OF_BLOCK) {
      copy_back(s, symbol, distances);
    } else if (s->out_at == s->out_size) {
      s->broken = true;
    } else {
      s->out[s->out_at++] = (uint8_t)symbol;
    }
  }
}

/* 3.2.4 */
static void read_stored(stream *s) {
  s->bits = s->bit_count = 0;
  const size_t count = take(s, 16);
  if (take(s, 16) != (count ^ 0xFFFFu) || s->broken || count > s->in_size - s->in_at ||
      count > s->out_size - s->out_at) {
    s->broken = true;
    return;
  }
  memcpy(s->out + s->out_at, s->in + s->in_at, count);
  s->in_at += count;
  s->out_at += count;
}

/* 3.2.6 */
static void read_fixed(stream *s) {
  uint8_t lengths[MOST_SYMBOLS];
  code literals, distances;
  for (uint32_t i = 0; i < MOST_SYMBOLS; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  make_code(&literals, lengths, MOST_SYMBOLS);
  memset(lengths, 5, 30);
  make_code(&distances, lengths, 30);
  read_coded(s, &literals, &distances);
}

/* 3.2.7 */
static void read_dynamic(stream *s) {
  static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t lengths[MOST_SYMBOLS + 32] = {0};
  code literals, distances;
  const uint32_t literal_count = take(s, 5) + 257, distance_count = take(s, 5) + 1, count = take(s, 4) + 4;
  for (uint32_t i = 0; i < count; ++i) lengths[order[i]] = (uint8_t)take(s, 3);
  make_code(&literals, lengths, 19);
  memset(lengths, 0, sizeof lengths);
  for (uint32_t i = 0; i < literal_count + distance_count && !s->broken;) {
    const uint32_t symbol = take_symbol(s, &literals);
    uint32_t repeats = 1, length = symbol;
    if (symbol == 16 && i > 0) repeats = 3 + take(s, 2), length = lengths[i - 1];
    if (symbol == 17) repeats = 3 + take(s, 3), length = 0;
    if (symbol == 18) repeats = 11 + take(s, 7), length = 0;
    if (length > MOST_BITS || literal_count > MOST_SYMBOLS || repeats > literal_count + distance_count - i) {
      s->broken = true;
      return;
    }
    for (; repeats > 0; --repeats) lengths[i++] = (uint8_t)length;
  }
  make_code(&literals, lengths, literal_count);
  make_code(&distances, lengths + literal_count, distance_count);
  read_coded(s, &literals, &distances);
}

bool inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
  stream s = {in, in_size, 0, 0, 0, out, out_size, 0, false};
  bool last = false;
  while (!last && !s.broken) {
    last = take(&s, 1) != 0;
    switch (take(&s, 2)) {
      case 0: read_stored(&s); break;
      case 1: read_fixed(&s); break;
      case 2: read_dynamic(&s); break;
      default: s.broken = true;
    }
  }
  return !s.broken && s.out_at == out_size && s.in_at == in_size;
}
