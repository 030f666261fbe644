"""What the child process does with OCP; imports nothing of the library but its own modules.

common      arrays of the output, exploring shapes, units
document    a STEP file as a document of names, colours and placements; its tree, and its description
looks       triangles, and mass properties of solids
faces       kinds, numbers and NURBS of faces
edges       the same of edges and vertices
writing     the tree of a file again, with other placements of its parts
"""
