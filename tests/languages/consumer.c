/* A program of somebody else's: knows the installed headers and library, nothing of the source tree.
 * Valid C99 and C++17. Usage: consumer add.pte; prints the sum of (2, 3) ones and (2, 3) twos. */
#include <etude/etude.h>
#include <etude/host.h>
#include <stdio.h>
#include <string.h>

static etude_status run(etude_method *method, etude_error *error) {
  float x[6] = {1, 1, 1, 1, 1, 1};
  float y[6] = {2, 2, 2, 2, 2, 2};
  int32_t sizes[2] = {2, 3};
  etude_tensor tensors[2];
  etude_value values[2];
  etude_status status;
  int i;

  memset(tensors, 0, sizeof tensors);
  memset(values, 0, sizeof values);
  for (i = 0; i < 2; i++) {
    tensors[i].data = i == 0 ? x : y;
    tensors[i].sizes = sizes;
    tensors[i].rank = 2;
    tensors[i].scalar_type = ETUDE_FLOAT;
    tensors[i].capacity = sizeof x;
    values[i].tag = ETUDE_VALUE_TENSOR;
    values[i].as.tensor = &tensors[i];
  }
  status = etude_method_set_inputs(method, values, 2, error);
  if (status == ETUDE_OK) {
    status = etude_method_execute(method, error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_get_output(method, 0, &values[0], error);
  }
  if (status == ETUDE_OK) {
    for (i = 0; i < 6; i++) {
      printf("%g ", ((const float *)values[0].as.tensor->data)[i]);
    }
    printf("\n");
  }
  return status;
}

int main(int argc, char **argv) {
  etude_error error = ETUDE_ERROR_INIT;
  etude_runtime *runtime = NULL;
  etude_program *program = NULL;
  etude_method *method = NULL;
  etude_data_loader loader;
  etude_status status = etude_host_runtime_create(1, &runtime, &error);

  if (status == ETUDE_OK) {
    status = etude_data_from_file(argc > 1 ? argv[1] : "add.pte", ETUDE_FILE_MAP, &loader, &error);
  }
  if (status == ETUDE_OK) {
    status = etude_program_load(runtime, &loader, NULL, &program, &error);
  }
  if (status == ETUDE_OK) {
    status = etude_method_load(program, "forward", NULL, &method, &error);
  }
  if (status == ETUDE_OK) {
    status = run(method, &error);
  }
  if (status != ETUDE_OK) {
    printf("%s: %s\n", etude_status_name(status), error.message);
  }
  etude_method_free(method);
  etude_program_free(program);
  etude_host_runtime_free(runtime);
  return status != ETUDE_OK;
}
