# Debian's LibTorch names these libraries and uses no symbol of them (torch_unused_test). With them come 220 others, as Qt
# and GDAL, which take half of the time in which a rank is linked at its start. A program whose DT_RPATH leads to a folder
# of empty libraries of these names is spared that; without the folder it finds the true ones and is slower.
TORCH_UNUSED = [
    "libavcodec.so.59",
    "libavformat.so.59",
    "libavutil.so.57",
    "libopencv_calib3d.so.406",
    "libopencv_core.so.406",
    "libopencv_dnn.so.406",
    "libopencv_features2d.so.406",
    "libopencv_flann.so.406",
    "libopencv_highgui.so.406",
    "libopencv_imgcodecs.so.406",
    "libopencv_imgproc.so.406",
    "libopencv_optflow.so.406",
    "libopencv_video.so.406",
    "libopencv_videoio.so.406",
    "libopencv_ximgproc.so.406",
    "libswresample.so.4",
    "libswscale.so.6",
    "libzmq.so.5",
]
