"""liblustreapi through ctypes: prototypes, calls, and layouts given to files and directories."""
