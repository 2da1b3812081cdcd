# What tokenizers need to know of Unicode: PCRE2 (expressions with properties) and utf8proc (normal
# forms). shardwise_unicode_missing names what is not here.
find_path(SHARDWISE_PCRE2_INCLUDE pcre2.h)
find_library(SHARDWISE_PCRE2_LIBRARY pcre2-8)
find_path(SHARDWISE_UTF8PROC_INCLUDE utf8proc.h)
find_library(SHARDWISE_UTF8PROC_LIBRARY utf8proc)
mark_as_advanced(SHARDWISE_PCRE2_INCLUDE SHARDWISE_PCRE2_LIBRARY
  SHARDWISE_UTF8PROC_INCLUDE SHARDWISE_UTF8PROC_LIBRARY)

set(shardwise_unicode_missing)
if(NOT SHARDWISE_PCRE2_INCLUDE OR NOT SHARDWISE_PCRE2_LIBRARY)
  list(APPEND shardwise_unicode_missing "PCRE2 is missing (libpcre2-dev)")
endif()
if(NOT SHARDWISE_UTF8PROC_INCLUDE OR NOT SHARDWISE_UTF8PROC_LIBRARY)
  list(APPEND shardwise_unicode_missing "utf8proc is missing (libutf8proc-dev)")
endif()
