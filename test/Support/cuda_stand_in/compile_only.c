// A libcuda.so.1 for cuDNN alone, on machines without a card: its functions to load code say that they did, and load
// nothing, so that the library goes as far with a graph as it can: it checks it, compiles it for a card whose properties
// it was told, and says how much workspace it wants. Nothing can be executed.

#define EXPORT __attribute__((visibility("default")))

enum { kSuccess = 0, kNoDevice = 100 };

static char loaded[64];

EXPORT int cuInit(unsigned flags) { return (void)flags, kNoDevice; }
EXPORT int cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }

#define LOADS(name) \
  EXPORT int name(void** made) { return *made = loaded, kSuccess; }
LOADS(cuLibraryLoadData)
LOADS(cuLibraryLoadFromFile)
LOADS(cuLibraryGetKernel)
LOADS(cuModuleLoadData)
LOADS(cuModuleLoadDataEx)
LOADS(cuModuleLoadFatBinary)
LOADS(cuModuleGetFunction)

#define DOES_NOTHING(name) \
  EXPORT int name(void) { return kSuccess; }
DOES_NOTHING(cuFuncGetAttribute)
DOES_NOTHING(cuFuncSetAttribute)
DOES_NOTHING(cuKernelGetAttribute)
DOES_NOTHING(cuKernelSetAttribute)
DOES_NOTHING(cuLibraryUnload)
DOES_NOTHING(cuModuleUnload)

// It wants to find these, and needs a card to call them.
#define NEEDS_A_CARD(name) \
  EXPORT int name(void) { return kNoDevice; }
NEEDS_A_CARD(cuCtxGetCurrent)
NEEDS_A_CARD(cuCtxGetDevice)
NEEDS_A_CARD(cuCtxGetLimit)
NEEDS_A_CARD(cuCtxPopCurrent)
NEEDS_A_CARD(cuCtxPushCurrent)
NEEDS_A_CARD(cuDeviceGet)
NEEDS_A_CARD(cuDeviceGetAttribute)
NEEDS_A_CARD(cuDeviceGetCount)
NEEDS_A_CARD(cuDevicePrimaryCtxRelease)
NEEDS_A_CARD(cuDevicePrimaryCtxReset)
NEEDS_A_CARD(cuDevicePrimaryCtxRetain)
NEEDS_A_CARD(cuGetErrorName)
NEEDS_A_CARD(cuGetErrorString)
NEEDS_A_CARD(cuLaunchCooperativeKernel)
NEEDS_A_CARD(cuLaunchKernel)
NEEDS_A_CARD(cuLaunchKernelEx)
NEEDS_A_CARD(cuLinkAddData)
NEEDS_A_CARD(cuLinkAddData_v2)
NEEDS_A_CARD(cuLinkAddFile_v2)
NEEDS_A_CARD(cuLinkComplete)
NEEDS_A_CARD(cuLinkCreate)
NEEDS_A_CARD(cuLinkCreate_v2)
NEEDS_A_CARD(cuLinkDestroy)
NEEDS_A_CARD(cuMemcpyDtoH_v2)
NEEDS_A_CARD(cuModuleGetGlobal_v2)
NEEDS_A_CARD(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NEEDS_A_CARD(cuOccupancyMaxPotentialClusterSize)
NEEDS_A_CARD(cuStreamGetCtx)
NEEDS_A_CARD(cuStreamSynchronize)
NEEDS_A_CARD(cuTensorMapEncodeTiled)
