# Where the CUDA toolkit is, for the device functions and the driver of CUDA devices. CMake's own CUDA language is not used:
# nvcc compiles nothing for the host.
set(BOWLINE_CUDA AUTO CACHE STRING "Device code for NVIDIA GPUs: AUTO, where nvcc is found, ON, or OFF")
set_property(CACHE BOWLINE_CUDA PROPERTY STRINGS AUTO ON OFF)
# sm_NN makes code for that device, compute_NN makes PTX, which drivers compile for later ones.
set(BOWLINE_CUDA_ARCHITECTURES sm_80 sm_90a sm_100 compute_80 CACHE STRING "Architectures of the device code")

# Sets BOWLINE_NVCC where it is found, and BOWLINE_CUDA_HOME, whose include/ has the headers, where they are.
unset(BOWLINE_NVCC)
unset(BOWLINE_CUDA_HOME)
if(NOT BOWLINE_CUDA STREQUAL "OFF")
  if(DEFINED ENV{CUDACXX})
    set(BOWLINE_NVCC_HINT $ENV{CUDACXX})
  endif()
  find_program(BOWLINE_NVCC_PROGRAM NAMES ${BOWLINE_NVCC_HINT} nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  find_program(BOWLINE_NVCC_HOST NAMES g++)
  if(BOWLINE_NVCC_PROGRAM AND BOWLINE_NVCC_HOST)
    set(BOWLINE_NVCC ${BOWLINE_NVCC_PROGRAM})
    get_filename_component(nvcc ${BOWLINE_NVCC} REALPATH)
    get_filename_component(nvcc_home ${nvcc}/../.. ABSOLUTE)
    # A program named nvcc may be a script outside the toolkit's folder.
    foreach(home ${nvcc_home} $ENV{CUDA_HOME} /usr/local/cuda)
      if(NOT BOWLINE_CUDA_HOME AND EXISTS ${home}/include/cuda.h)
        set(BOWLINE_CUDA_HOME ${home})
      endif()
    endforeach()
    message(STATUS "CUDA: ${BOWLINE_NVCC}, for ${BOWLINE_CUDA_ARCHITECTURES}")
  elseif(BOWLINE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BOWLINE_CUDA is ON, but nvcc or g++, which it needs beside it, was not found; say where CUDA is in "
      "the environment, as CUDA_HOME or CUDACXX, or build with -DBOWLINE_CUDA=OFF")
  else()
    message(STATUS "CUDA: nvcc or g++ was not found; device code for NVIDIA GPUs is left out")
  endif()
endif()

# bowline_cuda_gencode(out): nvcc's flags for BOWLINE_CUDA_ARCHITECTURES.
function(bowline_cuda_gencode out)
  foreach(architecture ${BOWLINE_CUDA_ARCHITECTURES})
    string(REGEX REPLACE "^(sm|compute)_" "compute_" virtual ${architecture})
    list(APPEND flags -gencode arch=${virtual},code=${architecture})
  endforeach()
  set(${out} ${flags} PARENT_SCOPE)
endfunction()
