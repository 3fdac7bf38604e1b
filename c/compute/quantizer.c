/* How a row is quantised, for every set of tiles alike: its arithmetic must not be contracted in one and not in another. */
#include "tile_sets.h"

etude_quantizer etude_quantizer_of(float low, float high) {
  etude_quantizer by;
  by.factor = low == high ? 1.0f : 255.0f / (high - low);
  const float a = low * by.factor, b = high * by.factor;
  float zero = (-128.0f + a) + (127.0f + b) > 0.0f ? -128.0f - a : 127.0f - b;
  if (!(zero > -128.0f)) zero = -128.0f;
  if (zero > 127.0f) zero = 127.0f;
  by.row.zero = etude_round_small(zero);
  by.row.scale = 1.0f / by.factor;
  return by;
}
