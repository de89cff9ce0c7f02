# `cmake --install build/PRESET --prefix DIR` makes a tree that can be moved: bin/, and in lib/bowline/ the shared libraries
# that the tools use, but for the C library's, MLIR's and LLVM's. `make package` makes a tarball of the runtime's tree.
include(GNUInstallDirs)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME bowline-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
include(CPack)

# bowline_install_tools(tool ...)
function(bowline_install_tools)
  set_target_properties(${ARGV} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/bowline")
  foreach(tool ${ARGV})
    # RPATH instead of RUNPATH: it holds for libraries of libraries too, such as Gloo's.
    target_link_options(${tool} PRIVATE -Wl,--disable-new-dtags)
  endforeach()
  install(TARGETS ${ARGV} RUNTIME_DEPENDENCY_SET bowline_tools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Once, after all tools.
function(bowline_install_libraries)
  install(RUNTIME_DEPENDENCY_SET bowline_tools
    PRE_EXCLUDE_REGEXES
      [[^ld-linux]] [[^lib(c|m|dl|rt|pthread|resolv)\.so]] [[^libMLIR]] [[^libLLVM]]
    DIRECTORIES /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib /lib
    LIBRARY DESTINATION lib/bowline)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/bowline)
endfunction()
