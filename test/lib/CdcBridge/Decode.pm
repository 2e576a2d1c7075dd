package CdcBridge::Decode;

# A logical replication slot of the output plugin cdc_bridge, read by the SQL functions.
#
#   my $slot = CdcBridge::Decode->new($postgres, 'a', format => 'json', tables => 'public.*');
#   $postgres->psql('insert ...');
#   my @records = $slot->take;          # decoded, and gone from the slot
#   my @lines = $slot->take_lines(schemas => 'true');      # as texts; further options for this time

use strict;
use warnings;

use JSON::PP ();

sub new
{
	my ($class, $postgres, $name, %options) = @_;
	my $two_phase = delete $options{two_phase} ? 'true' : 'false';
	my $self = bless { postgres => $postgres, name => $name, options => { format => 'json', %options } }, $class;
	$postgres->psql("select pg_create_logical_replication_slot('$name', 'cdc_bridge', false, $two_phase)");
	return $self;
}

sub _query
{
	my ($self, $function, %more) = @_;
	my %options = (%{ $self->{options} }, %more);
	my $list = join(', ', map { my ($k, $v) = ($_, $options{$_}); s/'/''/g for $k, $v; "'$k', '$v'" } sort keys %options);
	return "select data from pg_logical_slot_${function}_changes('$self->{name}', null, null, $list)";
}

sub take_lines
{
	my ($self, %more) = @_;
	return split(/\n/, $self->{postgres}->psql($self->_query('get', %more)));
}

sub peek_lines
{
	my ($self, %more) = @_;
	return split(/\n/, $self->{postgres}->psql($self->_query('peek', %more)));
}

# The error that reading gives.
sub error
{
	my ($self, %more) = @_;
	return $self->{postgres}->psql_error($self->_query('peek', %more));
}

my $json = JSON::PP->new->allow_nonref;

sub take { my ($self, %more) = @_; return map { $json->decode($_) } $self->take_lines(%more); }
sub peek { my ($self, %more) = @_; return map { $json->decode($_) } $self->peek_lines(%more); }

# Pass over what is there.
sub skip { my ($self) = @_; $self->{postgres}->psql("select pg_replication_slot_advance('$self->{name}', pg_current_wal_lsn())"); return $self; }

sub drop { my ($self) = @_; $self->{postgres}->psql("select pg_drop_replication_slot('$self->{name}')"); return; }

1;
