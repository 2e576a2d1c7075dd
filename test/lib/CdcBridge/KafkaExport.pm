package CdcBridge::KafkaExport;

# An outgoing pipeline into topics of a private broker, replayed like that into files (CdcBridge::Export).
#
#   my $export = CdcBridge::KafkaExport->new(postgres => $postgres, kafka => $kafka)->setup->start;
#   $export->wait_for_all;
#   $export->is_replayed('shop', 't', 'id', 'name of the test');

use strict;
use warnings;

use parent -norequire, 'CdcBridge::Export';
use CdcBridge::Export;

sub new
{
	my ($class, %option) = @_;
	return $class->SUPER::new(server => 'events', %option);
}

sub _make_server
{
	my ($self) = @_;
	return "create server $self->{server} foreign data wrapper cdc_kafka options (bootstrap_servers '" . $self->{kafka}->address . "'$self->{server_options})";
}

# Take in what has come to the topics of tables; messages of one key are in one partition, so their order is kept.
sub _read_on
{
	my ($self) = @_;
	my %topics = $self->{kafka}->topics;
	for my $topic (sort grep { /^\w+\.\w+$/ && !/\.(schema_changes|message|transaction)$/ } keys %topics)
	{
		for my $message ($self->{kafka}->new_messages($topic))
		{
			$self->{tombstones}{$topic}++ unless $message->{value};
			push @{ $self->{records} }, $message->{value} if $message->{value};
		}
	}
	return;
}

1;
