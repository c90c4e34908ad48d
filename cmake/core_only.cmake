# For machines that have a compiler here but no libraries: fmt from its headers, GoogleTest from its
# sources, and no folder that the tests do not link. Only those headers are taken from the host's
# include folder, never the folder itself.
set(host_headers ${PROJECT_BINARY_DIR}/host_headers)
file(MAKE_DIRECTORY ${host_headers})
foreach(library fmt spdlog)
  if(NOT EXISTS /usr/include/${library})
    message(FATAL_ERROR "no headers of ${library}: install the packages that `make deps` names")
  endif()
  file(CREATE_LINK /usr/include/${library} ${host_headers}/${library} SYMBOLIC)
  add_library(${library}::${library} INTERFACE IMPORTED)
  target_include_directories(${library}::${library} SYSTEM INTERFACE ${host_headers})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL)

# The folders that compute; what others do is the same on every machine.
set(STRATA_CORE_TESTS base formats sample probe cpu)
if(STRATA_TESTS)
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
  foreach(library gtest gtest_main gmock)
    if(NOT TARGET GTest::${library})
      add_library(GTest::${library} ALIAS ${library})
    endif()
  endforeach()
endif()
