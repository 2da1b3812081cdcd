// A precompiled header belongs to a target that compiles something.
