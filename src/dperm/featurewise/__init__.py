"""Features on several nodes: messages, sketch, nodes, and the engines that run them.

A node alone holds its columns. The server holds none: it sends a message to every node,
gets one back from each, and never sees data. An engine carries the messages, within
this process or to workers elsewhere; both run the same node, so the bits are the same.
"""
