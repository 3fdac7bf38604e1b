/* What the example asks of a board. */
#ifndef BOARD_H_
#define BOARD_H_

void board_print(const char *text);

#endif /* BOARD_H_ */
