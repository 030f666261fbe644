"""What a mechanism looks like: scenes, pictures, files for other programs."""
