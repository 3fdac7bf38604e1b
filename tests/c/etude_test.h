/* A test harness of one screen: checks that count, and a runner per program.
 *
 * A test is a function without arguments. A failed CHECK prints where and what, and leaves the test function; a
 * program ends with the number of failed tests as its status, so that no failure can pass unseen. */
#ifndef ETUDE_TEST_H_
#define ETUDE_TEST_H_

#include <stdio.h>
#include <string.h>

static int test_failures;
static int test_runs;
static const char *test_current;

static inline void test_report(const char *file, int line, const char *text) {
  printf("FAILED %s\n  %s:%d: %s\n", test_current, file, line, text);
  test_failures++;
}

#define CHECK(condition)                           \
  do {                                             \
    if (!(condition)) {                            \
      test_report(__FILE__, __LINE__, #condition); \
      return;                                      \
    }                                              \
  } while (0)

/* Status of a call that fills `error`; prints the message where the status is another. */
#define CHECK_STATUS(expected, call, error)                                                              \
  do {                                                                                                   \
    const etude_status test_want_ = (expected);                                                          \
    const etude_status test_got_ = (call);                                                               \
    if (test_got_ != test_want_) {                                                                       \
      test_report(__FILE__, __LINE__, #call);                                                            \
      printf("  expected %s, got %s: %s\n", etude_status_name(test_want_), etude_status_name(test_got_), \
             test_got_ == ETUDE_OK ? "" : (error)->message);                                             \
      return;                                                                                            \
    }                                                                                                    \
  } while (0)

#define CHECK_OK(call, error) CHECK_STATUS(ETUDE_OK, call, error)

/* For what a message says, and nothing else. In a build without error texts (error_text=false) these checks have
   nothing to look at; TEST_END says how many were left out. */
#ifdef ETUDE_NO_ERROR_TEXT
static int test_left_out;
#define CHECK_MESSAGE(condition) ((void)(0 && (condition)), (void)test_left_out++)
#define CHECK_TEXT(message, part) CHECK_MESSAGE(strstr((message), (part)) != NULL)
#define TEST_PRINT_LEFT_OUT() printf("%d checks of messages left out: this build has no error texts\n", test_left_out)
#else
#define CHECK_MESSAGE(condition) CHECK(condition)
#define TEST_PRINT_LEFT_OUT() 0

/* `text` must hold `part`. */
#define CHECK_TEXT(text, part)                                \
  do {                                                        \
    if (strstr((text), (part)) == NULL) {                     \
      test_report(__FILE__, __LINE__, #text " lacks " #part); \
      printf("  text: %s\n  part: %s\n", (text), (part));     \
      return;                                                 \
    }                                                         \
  } while (0)
#endif

#define RUN(test)                                                \
  do {                                                           \
    const int test_before_ = test_failures;                      \
    test_current = #test;                                        \
    test_runs++;                                                 \
    test();                                                      \
    if (test_failures == test_before_) printf("ok %s\n", #test); \
    fflush(stdout);                                              \
  } while (0)

#define TEST_END()                                                                                          \
  ((void)TEST_PRINT_LEFT_OUT(), printf("%d passed, %d failed\n", test_runs - test_failures, test_failures), \
   test_failures != 0)

#endif /* ETUDE_TEST_H_ */
