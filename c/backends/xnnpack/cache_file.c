/* See cache_file.h. Numbers are little-endian, as everywhere in etude. */
#include "cache_file.h"

#include <string.h>

#define FORMAT_VERSION 1u
#define ALIGNMENT 64u

static const char magic[8] = {'E', 'T', 'X', 'N', 'N', 'P', 'K', '\n'};

/* 64 bytes. The checksum is over header and table, with zeros in its own place. */
typedef struct file_header {
  char magic[8];
  uint32_t version;
  uint32_t entry_count;
  uint64_t file_size;
  uint64_t checksum;
  char build[16];     /* version of etude: layouts may change with it */
  uint32_t word_size; /* bytes of a size_t */
  uint32_t reserved[3];
} file_header;

typedef struct file_entry {
  xnn_weights_key key;
  xnn_hash hash; /* of what the weights were made of */
  uint64_t offset, size;
  uint64_t checksum; /* of the packed bytes */
} file_entry;

/* ---- hash ---- */

static uint64_t rotate(uint64_t value, unsigned by) { return value << by | value >> (64 - by); }

#define PRIME_A UINT64_C(0x9E3779B185EBCA87)
#define PRIME_B UINT64_C(0xC2B2AE3D27D4EB4F)

static uint64_t absorb(uint64_t lane, uint64_t word) { return rotate((lane ^ word) * PRIME_A, 29) + word; }

static uint64_t finish(uint64_t value) {
  value = (value ^ value >> 31) * PRIME_B;
  value = (value ^ value >> 29) * PRIME_A;
  return value ^ value >> 32;
}

/* Four lanes of words, so that the multiplications don't wait for each other. */
void etude_xnn_hash_add(xnn_hash *hash, const void *data, size_t size) {
  const uint8_t *at = data;
  uint64_t lanes[4] = {hash->words[0] + size, hash->words[1] ^ PRIME_A, hash->words[0] ^ PRIME_B, hash->words[1] + 1};
  uint64_t words[4];
  size_t left = size;
  for (; left >= sizeof words; left -= sizeof words, at += sizeof words) {
    memcpy(words, at, sizeof words);
    for (unsigned i = 0; i < 4; ++i) lanes[i] = absorb(lanes[i], words[i]);
  }
  memset(words, 0, sizeof words);
  if (left > 0) memcpy(words, at, left);
  for (unsigned i = 0; i < 4; ++i) lanes[i] = finish(absorb(lanes[i], words[i]));
  hash->words[0] = finish(lanes[0] ^ rotate(lanes[1], 17) ^ rotate(lanes[2], 34) ^ rotate(lanes[3], 51));
  hash->words[1] = finish(lanes[0] + rotate(lanes[1], 13) + rotate(lanes[2], 26) + rotate(lanes[3], 39));
}

static void make_header(file_header *header, uint32_t entry_count, uint64_t file_size) {
  const char *version = etude_version();
  memset(header, 0, sizeof *header);
  memcpy(header->magic, magic, sizeof magic);
  header->version = FORMAT_VERSION;
  header->entry_count = entry_count;
  header->file_size = file_size;
  for (size_t i = 0; i + 1 < sizeof header->build && version[i] != '\0'; ++i) header->build[i] = version[i];
  header->word_size = (uint32_t)sizeof(size_t);
}

/* ---- reading ---- */

static file_entry entry_at(const xnn_cache_file *file, uint32_t index) {
  file_entry entry;
  memcpy(&entry, (const uint8_t *)file->bytes.data + sizeof(file_header) + index * sizeof entry, sizeof entry);
  return entry;
}

static bool is_sound(const xnn_cache_file *file) {
  const uint64_t start = sizeof(file_header) + (uint64_t)file->entry_count * sizeof(file_entry);
  if ((uintptr_t)file->bytes.data % ALIGNMENT != 0 || start > file->bytes.size) return false;
  for (uint32_t i = 0; i < file->entry_count; ++i) {
    const file_entry entry = entry_at(file, i);
    if (entry.offset % ALIGNMENT != 0 || entry.offset < start || entry.offset > file->bytes.size ||
        entry.size > file->bytes.size - entry.offset) {
      return false;
    }
  }
  return true;
}

static uint64_t checksum_of(const void *data, size_t size) {
  xnn_hash hash = {{0, 0}};
  etude_xnn_hash_add(&hash, data, size);
  return hash.words[0];
}

/* Of a head whose checksum is 0. */
static uint64_t head_checksum(const file_header *header, const uint8_t *head) {
  return checksum_of(header, sizeof *header) ^
         checksum_of(head + sizeof *header, header->entry_count * sizeof(file_entry));
}

static etude_status check(xnn_cache_file *file, const char *path, etude_error *error) {
  file_header header, expected;
  if (file->bytes.size < sizeof header || memcmp(file->bytes.data, magic, sizeof magic) != 0) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "file %q is no file of packed weights", path);
  }
  memcpy(&header, file->bytes.data, sizeof header);
  make_header(&expected, header.entry_count, file->bytes.size);
  const uint64_t checksum = header.checksum;
  header.checksum = 0;
  if (header.version != FORMAT_VERSION || memcmp(header.build, expected.build, sizeof header.build) != 0 ||
      header.word_size != expected.word_size) {
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "the packed weights in file %q are of another version of etude",
                           path);
  }
  file->entry_count = header.entry_count;
  if (memcmp(&header, &expected, sizeof header) != 0 || !is_sound(file) ||
      head_checksum(&header, file->bytes.data) != checksum) {
    return etude_error_set(error, ETUDE_INVALID_ARGUMENT, "file %q, of packed weights, is damaged", path);
  }
  return ETUDE_OK;
}

etude_status etude_xnn_cache_file_open(const etude_hooks *hooks, const char *path, xnn_cache_file *out,
                                       etude_error *error) {
  memset(out, 0, sizeof *out);
  if (hooks->map_file == NULL) return etude_error_set(error, ETUDE_NOT_FOUND, "there are no files here");
  ETUDE_TRY(hooks->map_file(hooks->self, path, &out->bytes, &out->handle, error));
  const etude_status status = check(out, path, error);
  if (status != ETUDE_OK) etude_xnn_cache_file_close(hooks, out);
  return status;
}

void etude_xnn_cache_file_close(const etude_hooks *hooks, xnn_cache_file *file) {
  if (file->bytes.data != NULL) hooks->unmap_file(hooks->self, file->handle);
  memset(file, 0, sizeof *file);
}

const void *etude_xnn_cache_file_find(const xnn_cache_file *file, const xnn_weights_key *key, const xnn_hash *hash,
                                      size_t size) {
  for (uint32_t i = 0; i < file->entry_count; ++i) {
    const file_entry entry = entry_at(file, i);
    const uint8_t *data = (const uint8_t *)file->bytes.data + entry.offset;
    if (entry.size != size || memcmp(&entry.hash, hash, sizeof *hash) != 0 ||
        memcmp(&entry.key, key, sizeof *key) != 0) {
      continue;
    }
    return checksum_of(data, size) == entry.checksum ? data : NULL;
  }
  return NULL;
}

/* ---- writing ---- */

static uint64_t align_up(uint64_t value) { return (value + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1); }

static const uint8_t zeros[ALIGNMENT];

/* Header and table, and behind them for each item its bytes and what fills them up. */
static void lay_out(uint8_t *head, size_t head_size, etude_bytes *pieces, const xnn_cache_item *items, uint32_t count) {
  uint64_t at = head_size;
  file_header header;
  pieces[0].data = head;
  pieces[0].size = head_size;
  for (uint32_t i = 0; i < count; ++i) {
    file_entry entry;
    memset(&entry, 0, sizeof entry);
    entry.key = *items[i].key;
    entry.hash = *items[i].hash;
    entry.offset = at;
    entry.size = items[i].data.size;
    entry.checksum = checksum_of(items[i].data.data, items[i].data.size);
    memcpy(head + sizeof header + i * sizeof entry, &entry, sizeof entry);
    pieces[1 + 2 * i] = items[i].data;
    pieces[2 + 2 * i].data = zeros;
    pieces[2 + 2 * i].size = (size_t)(align_up(entry.size) - entry.size);
    at += align_up(entry.size);
  }
  make_header(&header, count, at);
  header.checksum = head_checksum(&header, head);
  memcpy(head, &header, sizeof header);
}

/* A file that is there is replaced if it is ours, be it stale or damaged. */
static etude_status check_replaced(const etude_hooks *hooks, const char *path, etude_error *error) {
  etude_bytes bytes = {NULL, 0};
  void *handle = NULL;
  if (hooks->map_file == NULL) return ETUDE_OK;
  const etude_status status = hooks->map_file(hooks->self, path, &bytes, &handle, error);
  if (status != ETUDE_OK) return status == ETUDE_NOT_FOUND ? ETUDE_OK : status;
  const bool is_ours = bytes.size >= sizeof magic && memcmp(bytes.data, magic, sizeof magic) == 0;
  hooks->unmap_file(hooks->self, handle);
  if (is_ours) return ETUDE_OK;
  return etude_error_set(error, ETUDE_ACCESS_FAILED, "file %q is there and holds something else; name another", path);
}

static etude_status replace(const etude_hooks *hooks, const char *path, const etude_bytes *pieces, size_t count,
                            etude_error *error) {
  etude_error why;
  etude_status status = check_replaced(hooks, path, &why);
  if (status == ETUDE_OK) status = hooks->save_file(hooks->self, path, pieces, count, &why);
  if (status == ETUDE_OK) return ETUDE_OK;
  return etude_error_set(error, status, "packed_cache_path: no packed weights are saved: %s", why.message);
}

etude_status etude_xnn_cache_file_write(const etude_hooks *hooks, const char *path, const xnn_cache_item *items,
                                        uint32_t count, const etude_allocator *allocator, etude_error *error) {
  if (hooks->save_file == NULL)
    return etude_error_set(error, ETUDE_NOT_SUPPORTED, "there are no files here to save to");
  const size_t head_size = (size_t)align_up(sizeof(file_header) + (uint64_t)count * sizeof(file_entry));
  const size_t pieces_size = (1 + 2 * (size_t)count) * sizeof(etude_bytes);
  uint8_t *head = allocator->alloc(allocator->self, head_size, sizeof(uint64_t));
  etude_bytes *pieces = allocator->alloc(allocator->self, pieces_size, sizeof(uint64_t));
  etude_status status = ETUDE_OUT_OF_MEMORY;
  if (head == NULL || pieces == NULL) {
    etude_error_set(error, status, "no memory for a table of %u packed weights", count);
  } else {
    memset(head, 0, head_size);
    lay_out(head, head_size, pieces, items, count);
    status = replace(hooks, path, pieces, 1 + 2 * (size_t)count, error);
  }
  if (pieces != NULL) allocator->free(allocator->self, pieces, pieces_size);
  if (head != NULL) allocator->free(allocator->self, head, head_size);
  return status;
}
