/* An operating system stands in for the board. */
#include "board.h"

#include <stdio.h>

void board_print(const char *text) { (void)fputs(text, stdout); }
