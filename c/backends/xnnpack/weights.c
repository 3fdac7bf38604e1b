/* See weights.h.
 *
 * Two nodes pack the same where all fields of their keys and all bytes that the weights are made of are equal. The
 * bytes are compared, not only their names or hashes: each user of an entry keeps its own constants as long as it uses
 * the entry. In a file, whose makers are gone, a hash of 128 bits stands for the bytes. */
#include "weights.h"

#include "cache_file.h"

/* Parts that packing is divided into, for each worker. */
#define PARTS_PER_WORKER 4u
/* Bytes that are worth a part. */
#define LEAST_PART ((size_t)1 << 16)

/* Packed weights that nodes share. */
typedef struct xnn_weights_entry xnn_weights_entry;
struct xnn_weights_entry {
  struct xnn_weights_entry *next;
  xnn_weights_key key;
  xnn_hash hash; /* of the sources; where the cache has a path */
  void *data;
  size_t size;
  bool in_file;      /* `data` lies in the cache's file */
  uint32_t pins;     /* uses other than by nodes */
  xnn_packed *users; /* by xnn_packed.next_user */
};

struct xnn_cache {
  struct xnn_cache *next;
  uint32_t users;
  xnn_weights_entry *entries;
  xnn_cache_file file;
  char path[ETUDE_OPTION_STRING_SIZE]; /* "" = none */
};

/* ---- packing ---- */

typedef struct pack_work {
  const etude_convolution *c;
  const etude_weights *weights;
  void *to;
  size_t parts;
} pack_work;

static void pack_part(void *arg, size_t part, size_t worker) {
  const pack_work *w = arg;
  (void)worker;
  etude_convolution_pack(w->c, w->to, w->weights, part, w->parts);
}

static void pack(const xnn_loader *loader, const etude_convolution *c, const etude_weights *weights, void *to,
                 size_t size) {
  const etude_hooks *hooks = etude_init_context_hooks(loader->ctx);
  pack_work w = {c, weights, to, 1};
  if (hooks->parallel_for != NULL && loader->graph->workers > 1) w.parts = size / LEAST_PART;
  if (w.parts > loader->graph->workers * PARTS_PER_WORKER) w.parts = loader->graph->workers * PARTS_PER_WORKER;
  if (w.parts < 2) {
    etude_convolution_pack(c, to, weights, 0, 1);
  } else {
    hooks->parallel_for(hooks->self, w.parts, pack_part, &w);
  }
}

static void *new_packed(const xnn_loader *loader, const etude_allocator *allocator, const etude_convolution *c,
                        const etude_weights *weights, size_t size) {
  void *data = allocator->alloc(allocator->self, size, ETUDE_MEMORY_ALIGNMENT);
  if (data == NULL) {
    etude_error_set(loader->error, ETUDE_OUT_OF_MEMORY, "no memory for %z bytes of packed weights", size);
    return NULL;
  }
  pack(loader, c, weights, data, size);
  return data;
}

/* ---- what packed weights depend on ---- */

static uint64_t float_field(float value) { return etude_float_bits(value); }

static xnn_weights_key make_key(const xnn_loader *loader, const xnn_node *node, const etude_convolution *c,
                                const etude_weights *w, const xnn_value *filter, const xnn_value *bias) {
  const xnn_quantization *in = &etude_xnn_input(loader->graph, node, 0)->quant;
  const xnn_quantization *out = &etude_xnn_output(loader->graph, node, 0)->quant;
  const bool requantizes = c->arithmetic == ETUDE_ARITHMETIC_S8;
  const uint64_t fields[] = {
      c->arithmetic,
      etude_convolution_layout(c),
      c->transposed,
      c->groups,
      c->in_channels,
      c->out_channels,
      c->kernel_height,
      c->kernel_width,
      c->stride_height,
      c->stride_width,
      c->dilation_height,
      c->dilation_width,
      c->pad_top,
      c->pad_left,
      c->block,
      c->plain,
      w->out_stride,
      w->in_stride,
      (uint64_t)(int64_t)w->x_zero,
      filter->datatype,
      filter->constant_size,
      filter->quant.scale_count,
      float_field(filter->quant.scale),
      filter->quant.scales_are_bf16,
      bias != NULL ? bias->datatype : XNN_INVALID,
      bias != NULL ? bias->constant_size : 0,
      requantizes ? float_field(in->scale) : 0,
      requantizes ? float_field(out->scale) : 0,
  };
  xnn_weights_key key;
  memset(&key, 0, sizeof key);
  memcpy(key.fields, fields, sizeof fields);
  return key;
}

/* The bytes that go into packed weights: filter, bias, scales. */
typedef struct source_bytes {
  etude_bytes pieces[XNN_PACKED_SOURCES];
} source_bytes;

static source_bytes sources_of(const xnn_value *filter, const xnn_value *bias) {
  const size_t scale_size = filter->quant.scales_are_bf16 ? sizeof(uint16_t) : sizeof(float);
  source_bytes s = {{{filter->constant, filter->constant_size},
                     {bias != NULL ? bias->constant : NULL, bias != NULL ? bias->constant_size : 0},
                     {filter->quant.scales, filter->quant.scale_count * scale_size}}};
  return s;
}

static xnn_hash hash_of(const source_bytes *sources) {
  xnn_hash hash = {{0, 0}};
  for (uint32_t i = 0; i < XNN_PACKED_SOURCES; ++i) {
    etude_xnn_hash_add(&hash, sources->pieces[i].data, sources->pieces[i].size);
  }
  return hash;
}

/* Sizes are equal, since the keys are. */
static bool is_made_of(const xnn_weights_entry *entry, const source_bytes *sources) {
  if (entry->users == NULL) return false; /* its makers are gone, and it is about to go */
  for (uint32_t i = 0; i < XNN_PACKED_SOURCES; ++i) {
    const etude_bytes *piece = &sources->pieces[i];
    if (piece->size == 0 || entry->users->sources[i] == piece->data) continue;
    if (memcmp(entry->users->sources[i], piece->data, piece->size) != 0) return false;
  }
  return true;
}

/* ---- entries, under the lock ---- */

static xnn_weights_entry *find_entry(const xnn_cache *cache, const xnn_weights_key *key, const source_bytes *sources) {
  for (xnn_weights_entry *entry = cache->entries; entry != NULL; entry = entry->next) {
    if (memcmp(&entry->key, key, sizeof *key) == 0 && is_made_of(entry, sources)) return entry;
  }
  return NULL;
}

static void use_entry(xnn_weights_entry *entry, const source_bytes *sources, xnn_packed *out) {
  out->entry = entry;
  out->data = entry->data;
  out->size = entry->size;
  for (uint32_t i = 0; i < XNN_PACKED_SOURCES; ++i) out->sources[i] = sources->pieces[i].data;
  out->next_user = entry->users;
  entry->users = out;
}

static void insert_entry(xnn_backend *backend, xnn_cache *cache, xnn_weights_entry *entry) {
  entry->next = cache->entries;
  cache->entries = entry;
  if (!entry->in_file) backend->packed_bytes += entry->size;
}

/* Take an entry out that nobody uses any more; the caller frees it. */
static bool remove_unused(xnn_backend *backend, xnn_cache *cache, xnn_weights_entry *entry) {
  xnn_weights_entry **link = &cache->entries;
  if (entry->users != NULL || entry->pins != 0) return false;
  while (*link != entry) link = &(*link)->next;
  *link = entry->next;
  if (!entry->in_file) backend->packed_bytes -= entry->size;
  return true;
}

static void free_entry(const xnn_backend *backend, xnn_weights_entry *entry) {
  const etude_allocator *allocator = &backend->allocator;
  if (!entry->in_file) allocator->free(allocator->self, entry->data, entry->size);
  allocator->free(allocator->self, entry, sizeof *entry);
}

/* ---- pack ---- */

static etude_status new_entry(const xnn_loader *loader, const etude_convolution *c, const etude_weights *weights,
                              const xnn_weights_key *key, const source_bytes *sources, xnn_weights_entry **out) {
  const etude_allocator *allocator = &loader->backend->allocator;
  const xnn_cache *cache = loader->cache;
  xnn_weights_entry *entry = allocator->alloc(allocator->self, sizeof *entry, sizeof(uint64_t));
  if (entry == NULL) return etude_error_set(loader->error, ETUDE_OUT_OF_MEMORY, "no memory to share packed weights");
  memset(entry, 0, sizeof *entry);
  entry->key = *key;
  entry->size = etude_convolution_packed_size(c);
  if (cache->path[0] != '\0') entry->hash = hash_of(sources);
  entry->data = (void *)(uintptr_t)etude_xnn_cache_file_find(&cache->file, key, &entry->hash, entry->size);
  entry->in_file = entry->data != NULL;
  if (!entry->in_file) entry->data = new_packed(loader, allocator, c, weights, entry->size);
  if (entry->data == NULL) {
    allocator->free(allocator->self, entry, sizeof *entry);
    return ETUDE_OUT_OF_MEMORY;
  }
  *out = entry;
  return ETUDE_OK;
}

static etude_status pack_shared(const xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                const etude_weights *weights, const xnn_value *filter, const xnn_value *bias) {
  xnn_backend *backend = loader->backend;
  const xnn_weights_key key = make_key(loader, node, c, weights, filter, bias);
  const source_bytes sources = sources_of(filter, bias);
  xnn_weights_entry *fresh = NULL;
  etude_xnn_lock(backend);
  xnn_weights_entry *entry = find_entry(loader->cache, &key, &sources);
  if (entry != NULL) use_entry(entry, &sources, &node->packed);
  etude_xnn_unlock(backend);
  if (entry != NULL) return ETUDE_OK;
  ETUDE_TRY(new_entry(loader, c, weights, &key, &sources, &fresh));
  etude_xnn_lock(backend);
  entry = find_entry(loader->cache, &key, &sources); /* another thread may have been faster */
  if (entry == NULL) {
    insert_entry(backend, loader->cache, fresh);
    entry = fresh;
  }
  use_entry(entry, &sources, &node->packed);
  etude_xnn_unlock(backend);
  if (entry != fresh) free_entry(backend, fresh);
  return ETUDE_OK;
}

etude_status etude_xnn_weights_pack(xnn_loader *loader, xnn_node *node, const etude_convolution *c,
                                    const etude_weights *weights, const xnn_value *filter, const xnn_value *bias) {
  if (loader->cache != NULL) return pack_shared(loader, node, c, weights, filter, bias);
  const size_t size = etude_convolution_packed_size(c);
  node->packed.data = new_packed(loader, &loader->graph->allocator, c, weights, size);
  node->packed.size = size;
  return node->packed.data != NULL ? ETUDE_OK : ETUDE_OUT_OF_MEMORY;
}

static void leave_entry(xnn_backend *backend, xnn_cache *cache, xnn_packed *packed) {
  xnn_weights_entry *entry = packed->entry;
  xnn_packed **link = &entry->users;
  etude_xnn_lock(backend);
  while (*link != packed) link = &(*link)->next_user;
  *link = packed->next_user;
  const bool unused = remove_unused(backend, cache, entry);
  etude_xnn_unlock(backend);
  if (unused) free_entry(backend, entry);
}

void etude_xnn_weights_free(xnn_backend *backend, xnn_cache *cache, xnn_graph *graph) {
  for (uint32_t i = graph->nodes != NULL ? graph->node_capacity : 0; i-- > 0;) {
    xnn_packed *packed = &graph->nodes[i].packed;
    if (packed->entry != NULL) {
      leave_entry(backend, cache, packed);
    } else if (packed->data != NULL) {
      graph->allocator.free(graph->allocator.self, (void *)(uintptr_t)packed->data, packed->size);
    }
    memset(packed, 0, sizeof *packed);
  }
}

/* ---- caches ---- */

static xnn_cache *find_cache(const xnn_backend *backend, const char *path) {
  xnn_cache *cache = backend->caches;
  while (cache != NULL && strcmp(cache->path, path) != 0) cache = cache->next;
  if (cache != NULL) cache->users++;
  return cache;
}

static void free_cache(const xnn_backend *backend, xnn_cache *cache) {
  etude_xnn_cache_file_close(backend->hooks, &cache->file);
  backend->allocator.free(backend->allocator.self, cache, sizeof *cache);
}

/* A file that can't be used is as good as none, but not silently. */
static void open_file(const xnn_backend *backend, const etude_init_context *ctx, xnn_cache *cache) {
  etude_error why = ETUDE_ERROR_INIT;
  const etude_status status = etude_xnn_cache_file_open(backend->hooks, cache->path, &cache->file, &why);
  if (status == ETUDE_OK || status == ETUDE_NOT_FOUND) return;
  etude_init_context_log(ctx, ETUDE_LOG_WARNING,
                         why.message[0] != '\0' ? why.message : "a file of packed weights is not used");
}

etude_status etude_xnn_cache_join(xnn_backend *backend, etude_init_context *ctx, const char *path, xnn_cache **out,
                                  etude_error *error) {
  etude_xnn_lock(backend);
  *out = find_cache(backend, path);
  etude_xnn_unlock(backend);
  if (*out != NULL) return ETUDE_OK;
  xnn_cache *fresh = backend->allocator.alloc(backend->allocator.self, sizeof *fresh, sizeof(void *));
  if (fresh == NULL) return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a cache of packed weights");
  memset(fresh, 0, sizeof *fresh);
  memcpy(fresh->path, path, strlen(path) + 1);
  fresh->users = 1;
  if (path[0] != '\0') open_file(backend, ctx, fresh);
  etude_xnn_lock(backend);
  *out = find_cache(backend, path); /* another thread may have been faster */
  if (*out == NULL) {
    fresh->next = backend->caches;
    backend->caches = fresh;
    *out = fresh;
    fresh = NULL;
  }
  etude_xnn_unlock(backend);
  if (fresh != NULL) free_cache(backend, fresh);
  return ETUDE_OK;
}

void etude_xnn_cache_leave(xnn_backend *backend, xnn_cache *cache) {
  etude_xnn_lock(backend);
  const bool last = --cache->users == 0;
  if (last) {
    xnn_cache **link = &backend->caches;
    while (*link != cache) link = &(*link)->next;
    *link = cache->next;
  }
  etude_xnn_unlock(backend);
  if (last) free_cache(backend, cache);
}

/* ---- saving ---- */

/* Entries as they are now, each pinned. */
typedef struct snapshot {
  xnn_weights_entry **entries;
  xnn_cache_item *items;
  uint32_t count;
} snapshot;

static uint32_t count_entries(const xnn_cache *cache) {
  uint32_t count = 0;
  for (const xnn_weights_entry *entry = cache->entries; entry != NULL; entry = entry->next) ++count;
  return count;
}

static void pin_entries(xnn_cache *cache, snapshot *s, uint32_t room) {
  for (xnn_weights_entry *entry = cache->entries; entry != NULL && s->count < room; entry = entry->next) {
    const xnn_cache_item item = {&entry->key, &entry->hash, {entry->data, entry->size}};
    entry->pins++;
    s->entries[s->count] = entry;
    s->items[s->count++] = item;
  }
}

static void unpin_entries(xnn_backend *backend, xnn_cache *cache, const snapshot *s) {
  for (uint32_t i = 0; i < s->count; ++i) {
    etude_xnn_lock(backend);
    s->entries[i]->pins--;
    const bool unused = remove_unused(backend, cache, s->entries[i]);
    etude_xnn_unlock(backend);
    if (unused) free_entry(backend, s->entries[i]);
  }
}

static etude_status save_cache(xnn_backend *backend, xnn_cache *cache, etude_error *error) {
  const etude_allocator *allocator = &backend->allocator;
  etude_xnn_lock(backend);
  const uint32_t room = count_entries(cache);
  etude_xnn_unlock(backend);
  if (room == 0) return ETUDE_OK;
  snapshot s = {NULL, NULL, 0};
  const size_t size = room * (sizeof *s.entries + sizeof *s.items);
  s.items = allocator->alloc(allocator->self, size, sizeof(void *));
  if (s.items == NULL)
    return etude_error_set(error, ETUDE_OUT_OF_MEMORY, "no memory for a list of %u packed weights", room);
  s.entries = (xnn_weights_entry **)(void *)(s.items + room);
  etude_xnn_lock(backend);
  pin_entries(cache, &s, room);
  etude_xnn_unlock(backend);
  const etude_status status =
      etude_xnn_cache_file_write(backend->hooks, cache->path, s.items, s.count, allocator, error);
  unpin_entries(backend, cache, &s);
  allocator->free(allocator->self, s.items, size);
  return status;
}

/* The next cache with a path behind `cache` (NULL = the first), which is used until it is left. */
static xnn_cache *next_cache(xnn_backend *backend, const xnn_cache *cache) {
  etude_xnn_lock(backend);
  xnn_cache *next = cache != NULL ? cache->next : backend->caches;
  while (next != NULL && next->path[0] == '\0') next = next->next;
  if (next != NULL) next->users++;
  etude_xnn_unlock(backend);
  return next;
}

etude_status etude_xnn_caches_save(xnn_backend *backend, etude_error *error) {
  etude_status status = ETUDE_OK;
  xnn_cache *cache = next_cache(backend, NULL);
  while (cache != NULL && status == ETUDE_OK) {
    status = save_cache(backend, cache, error);
    xnn_cache *next = next_cache(backend, cache);
    etude_xnn_cache_leave(backend, cache);
    cache = next;
  }
  if (cache != NULL) etude_xnn_cache_leave(backend, cache);
  return status;
}
