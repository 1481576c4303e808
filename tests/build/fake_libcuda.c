/* The driver's library with one GPU, whose memory is that of the process. FAKE_CUDA_FAILS names a call that fails. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int ends(const char *name) {
    const char *failing = getenv("FAKE_CUDA_FAILS");
    return failing && !strcmp(failing, name) ? (strcmp(name, "cuInit") ? 719 : 100) : 0;
}

int cuInit(unsigned flags) { return ends("cuInit"); }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuDeviceGetAttribute(int *value, int number, int device) { *value = number == 75 ? 7 : 0; return 0; }
int cuDeviceGetName(char *text, int size, int device) {
    const char *own = getenv("CUDA_VISIBLE_DEVICES");
    strncpy(text, own ? own : "Fake GPU", size);
    return 0;
}
/* The kernel must be for the GPU's compute capability, which is 7.0. */
int cuModuleLoadData(void **module, const char *text) { return strstr(text, ".target sm_70\n") ? 0 : 218; }
int cuModuleGetFunction(void **kernel, void *module, const char *name) { return strcmp(name, "work") ? 500 : 0; }
int cuMemAlloc_v2(uint64_t *memory, size_t size) {
    *memory = (uint64_t)(uintptr_t)malloc(size);
    return ends("cuMemAlloc_v2");
}
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size) {
    memset((void *)(uintptr_t)memory, value, size);
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t memory, const void *data, size_t size) {
    memcpy((void *)(uintptr_t)memory, data, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *data, uint64_t memory, size_t size) {
    memcpy(data, (void *)(uintptr_t)memory, size);
    return 0;
}
int cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    float *numbers = (float *)(uintptr_t) * (uint64_t *)parameters[0];
    uint32_t count = *(uint32_t *)parameters[1], rounds = *(uint32_t *)parameters[2];
    if (gx * bx < count)
        return 1;
    /* All numbers are equal, so one is computed. */
    for (uint32_t round = 0; round < rounds; round++)
        numbers[0] = numbers[0] / 2 + (getenv("FAKE_CUDA_WRONG") ? 2 : 1);
    return ends("cuLaunchKernel");
}
int cuGetErrorName(int code, const char **text) { *text = "CUDA_ERROR_LAUNCH_FAILED"; return 0; }
