// The device functions, compiled for this processor; they register themselves.
#include "kernels/cuda/image.cu"
