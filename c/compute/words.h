/* Matrices of elements of 4 bytes, whatever they stand for, transposed: to[r * to_row + c] = from[c * from_row + r], for
 * r < rows and c < cols. Rows are counted in elements; the matrices don't overlap. */
#ifndef ETUDE_COMPUTE_WORDS_H_
#define ETUDE_COMPUTE_WORDS_H_

#include <stddef.h>

typedef void (*etude_words_loop)(void *to, ptrdiff_t to_row, const void *from, ptrdiff_t from_row, size_t rows,
                                 size_t cols);

/* By the best loops of this processor. */
void etude_transpose_words(void *to, ptrdiff_t to_row, const void *from, ptrdiff_t from_row, size_t rows, size_t cols);

/* All loops that this processor runs, best first, NULL from their number on (isa.h). */
etude_words_loop etude_transpose_words_at(size_t index);

#endif /* ETUDE_COMPUTE_WORDS_H_ */
