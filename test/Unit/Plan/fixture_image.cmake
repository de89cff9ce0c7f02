# The fixture's generated kernels, as the image that a plan carries: bowline_fixture_image, to link. Self-contained: no
# library, no sanitizer.
set(fixture_image ${CMAKE_CURRENT_BINARY_DIR}/fixture_kernels.so)
add_custom_command(
  OUTPUT ${fixture_image}
  COMMAND ${CMAKE_CXX_COMPILER} -shared -fPIC -O2 -nostdlib -o ${fixture_image}
          ${CMAKE_CURRENT_LIST_DIR}/fixture_kernels.cc
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/fixture_kernels.cc VERBATIM)
add_custom_target(fixture_kernels DEPENDS ${fixture_image})
add_library(bowline_fixture_image INTERFACE)
add_dependencies(bowline_fixture_image fixture_kernels)
target_compile_definitions(bowline_fixture_image INTERFACE BOWLINE_FIXTURE_IMAGE="${fixture_image}")
