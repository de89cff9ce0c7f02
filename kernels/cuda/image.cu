// All device functions, in one image.
#include "kernels/cuda/attention.cu"
#include "kernels/cuda/attention_backward_mma.cu"
#include "kernels/cuda/attention_forward_mma.cu"
#include "kernels/cuda/embedding.cu"
#include "kernels/cuda/fill.cu"
#include "kernels/cuda/grouped.cu"
#include "kernels/cuda/random.cu"
#include "kernels/cuda/rope.cu"
