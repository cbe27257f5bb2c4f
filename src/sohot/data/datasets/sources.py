"""Where data sets come from: links with checksums where stable ones exist, otherwise directions."""

from dataclasses import dataclass

from ...functional.plain_checks import check_choice
from ..fetch import Download


@dataclass(frozen=True)
class Source:
    """How to get a part of a data set.

    Attributes:
        title: What it is.
        terms: The terms of use.
        page: The page of its makers.
        downloads: Files that can be fetched; none where they must be downloaded by hand.
        steps: What to do by hand, one sentence each; ROOT stands for the folder of the data set.
    """

    title: str
    terms: str
    page: str
    downloads: tuple[Download, ...] = ()
    steps: tuple[str, ...] = ()


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
_VOC = "https://thor.robots.ox.ac.uk/pascal/VOC/voc2007/"

SOURCES: dict[str, tuple[Source, ...]] = {
    "office31": (
        Source(
            "Office-31 (Saenko et al., ECCV 2010)",
            "for research; its pictures belong to their makers",
            "https://faculty.cc.gatech.edu/~judy/domainadapt/",
            steps=(
                "Download domain_adaptation_images.tar.gz from the page.",
                "Unpack it: tar -xzf domain_adaptation_images.tar.gz -C ROOT",
                "ROOT then holds amazon/images/, dslr/images/ and webcam/images/, each with 31 folders.",
            ),
        ),
    ),
    "rgbd-caltech": (
        Source(
            "RGB-D Object Dataset (Lai et al., ICRA 2011)",
            "for non-commercial research",
            "https://rgbd-dataset.cs.washington.edu/",
            steps=(
                "Download the cropped images (rgbd-dataset, or rgbd-dataset_eval with every fifth frame) of the "
                "categories ball, calculator, cereal_box, coffee_mug, flashlight, keyboard, lightbulb, mushroom, "
                "soda_can and tomato.",
                "Unpack each archive: tar -xf ARCHIVE -C ROOT",
                "ROOT then holds rgbd-dataset/CATEGORY/CATEGORY_N/*_depthcrop.png.",
            ),
        ),
        Source(
            "Caltech256 (Griffin, Holub, Perona, 2007)",
            "see its page; its pictures belong to their makers",
            "https://doi.org/10.22002/D1.20087",
            (
                Download(
                    "https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
                    "256_ObjectCategories.tar",
                    "md5:67b4f42ca05d46448c6bb8ecd2220f6d",
                ),
            ),
            ("Unpack it: tar -xf ROOT/256_ObjectCategories.tar -C ROOT",),
        ),
    ),
    "voc-sketches": (
        Source(
            "Pascal VOC2007 (Everingham et al.)",
            "for research; its pictures are from Flickr and under Flickr's terms",
            "http://host.robots.ox.ac.uk/pascal/VOC/voc2007/",
            (
                Download(
                    f"{_VOC}VOCtrainval_06-Nov-2007.tar",
                    "VOCtrainval_06-Nov-2007.tar",
                    "md5:c52e279531787c972589f7e41ab4ae64",
                ),
                Download(
                    f"{_VOC}VOCtest_06-Nov-2007.tar", "VOCtest_06-Nov-2007.tar", "md5:b6e924de25625d8de591ea690078ad9f"
                ),
            ),
            (
                "Unpack them: tar -xf ROOT/VOCtrainval_06-Nov-2007.tar -C ROOT",
                "and: tar -xf ROOT/VOCtest_06-Nov-2007.tar -C ROOT",
                "ROOT then holds VOCdevkit/VOC2007/Annotations and JPEGImages.",
            ),
        ),
        Source(
            "TU Berlin sketches (Eitz, Hays, Alexa, SIGGRAPH 2012)",
            "Creative Commons Attribution 4.0",
            "https://cybertron.cg.tu-berlin.de/eitz/projects/classifysketch/",
            steps=(
                "Download the sketches as PNG (sketches_png.zip) from the page.",
                "Unpack it: unzip sketches_png.zip -d ROOT",
                "ROOT then holds png/CLASS/*.png.",
            ),
        ),
    ),
    "digits": (
        Source(
            "MNIST (LeCun, Cortes, Burges)",
            "see its page",
            "http://yann.lecun.com/exdb/mnist/",
            (
                Download(
                    f"{_MNIST}train-images-idx3-ubyte.gz",
                    "train-images-idx3-ubyte.gz",
                    "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
                ),
                Download(
                    f"{_MNIST}train-labels-idx1-ubyte.gz",
                    "train-labels-idx1-ubyte.gz",
                    "md5:d53e105ee54ea40749a09fcbcd1e9432",
                ),
                Download(
                    f"{_MNIST}t10k-images-idx3-ubyte.gz",
                    "t10k-images-idx3-ubyte.gz",
                    "md5:9fb629c4189551a2d022fa330f9573f3",
                ),
                Download(
                    f"{_MNIST}t10k-labels-idx1-ubyte.gz",
                    "t10k-labels-idx1-ubyte.gz",
                    "md5:ec29112dd5afa0611ce80d1b7f02629c",
                ),
            ),
        ),
        Source(
            "USPS (Hull, PAMI 1994), from LIBSVM's site",
            "see its page",
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#usps",
            (
                Download(f"{_USPS}usps.bz2", "usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
                Download(f"{_USPS}usps.t.bz2", "usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
            ),
        ),
    ),
    "domains": (
        Source(
            "Your own images",
            "your own",
            "",
            steps=("Put them into ROOT/DOMAIN/CLASS/: one folder per domain, in it one folder per class.",),
        ),
    ),
    "office-home": (
        Source(
            "Office-Home (Venkateswara et al., CVPR 2017)",
            "for non-commercial research",
            "https://www.hemanthdv.org/officeHomeDataset.html",
            steps=(
                "Download OfficeHomeDataset_10072016.zip from the page.",
                "Unpack it: unzip OfficeHomeDataset_10072016.zip -d ROOT",
            ),
        ),
    ),
    "pacs": (
        Source(
            "PACS (Li et al., ICCV 2017)",
            "for research",
            "https://dali-dl.github.io/project_iccv2017.html",
            steps=(
                "Download the images from the page and unpack them into ROOT.",
                "ROOT then holds photo/, art_painting/, cartoon/ and sketch/, each with 7 folders.",
            ),
        ),
    ),
}


def dataset_sources(name: str) -> tuple[Source, ...]:
    """Return the sources of a data set.

    >>> [source.title for source in dataset_sources("digits")]
    ['MNIST (LeCun, Cortes, Burges)', "USPS (Hull, PAMI 1994), from LIBSVM's site"]
    """
    check_choice(name, tuple(SOURCES), "the name of a data set")
    return SOURCES[name]
