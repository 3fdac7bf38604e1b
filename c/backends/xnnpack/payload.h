/* Reading the payload: a header, a FlatBuffer of values and nodes, and constants. Everything is bounds-checked. */
#ifndef ETUDE_XNNPACK_PAYLOAD_H_
#define ETUDE_XNNPACK_PAYLOAD_H_

#include "core/flatbuf.h"
#include "graph.h"

typedef struct xnn_reader {
  etude_fb fb;
  etude_fb_table root;
  etude_fb_table table; /* of the node being read */
  etude_init_context *ctx;
  bool has_header;
  const uint8_t *region; /* of constants, behind the FlatBuffer */
  size_t region_size;
  etude_bytes payload;
  bool missing_is_external; /* what a missing key is called: see etude_xnn_payload_read */
  etude_error *error;
} xnn_reader;

/* Read a whole payload into a graph, which stands unsorted, with ids for numbers; end it with etude_xnn_graph_free also
   on failure. With the weight cache, a named constant that is missing is ::ETUDE_INVALID_EXTERNAL_DATA. */
etude_status etude_xnn_payload_read(etude_init_context *ctx, etude_bytes payload, bool weight_cache, xnn_graph *graph,
                                    etude_error *error);

/* ---- for the readers of nodes: fields of the node's table ---- */

static inline uint32_t etude_xnn_field(xnn_reader *reader, uint32_t slot) {
  return etude_fb_u32(&reader->fb, reader->table, slot);
}

float etude_xnn_field_float(xnn_reader *reader, uint32_t slot);

/* At most XNN_MOST_DIMS numbers; ::ETUDE_INVALID_PROGRAM where the vector is absent. */
etude_status etude_xnn_field_dims(xnn_reader *reader, uint32_t slot, const char *what, size_t *out,
                                  uint32_t *out_count);

#endif /* ETUDE_XNNPACK_PAYLOAD_H_ */
