# The libraries Strata stands on, all of them packages of the system; ARCHITECTURE.md says what
# each is for.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
if(STRATA_TESTS)
  find_package(GTest REQUIRED)
endif()
